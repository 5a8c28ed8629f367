package archtest

import (
	"go/ast"
	"slices"
	"strings"
)

// checkSizes reports files, packages, interfaces and mains that have outgrown
// their bounds.
func checkSizes(t *tree, report reporter) {
	const reason = "what fits in a head can be changed with confidence"
	for _, p := range t.packages {
		n := 0
		for _, f := range p.files {
			if !f.test && !f.generated {
				n++
			}
		}
		if n > maxPackageFiles {
			report(p.path, itoa(n)+" files, at most "+itoa(maxPackageFiles), reason)
		}
	}
	t.each(func(_ *pkg, f *file) {
		if f.lines > maxFileLines {
			report(f.name, itoa(f.lines)+" lines, at most "+itoa(maxFileLines), reason)
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.InterfaceType:
				if methods := countMethods(n); methods > maxInterfaceMethods {
					report(t.at(n), "interface of "+itoa(methods)+" methods, at most "+itoa(maxInterfaceMethods), reason)
				}
			case *ast.FuncDecl:
				lines := t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
				if n.Name.Name == "main" && n.Recv == nil && f.syntax.Name.Name == "main" && lines > maxMainLines {
					report(t.at(n), "main of "+itoa(lines)+" lines, at most "+itoa(maxMainLines), reason)
				}
			}
			return true
		})
	})
}

// countMethods counts the methods that the interface itself declares; an
// interface composed of small ones is fine.
func countMethods(i *ast.InterfaceType) int {
	n := 0
	for _, field := range i.Methods.List {
		if _, ok := field.Type.(*ast.FuncType); ok {
			n += len(field.Names)
		}
	}
	return n
}

// checkUses reports functions and variables used where they may not be.
func checkUses(t *tree, report reporter) {
	t.each(func(p *pkg, f *file) {
		if f.test || f.faults {
			return
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			for _, u := range uses {
				if name := selected(f, n, u.imported); slices.Contains(u.names, name) && !underAny(p.path, u.in) {
					report(t.at(n), u.imported+"."+name, u.reason)
				}
			}
			return true
		})
	})
}

// checkSleeps reports sleeps in tests outside of synctest's bubbles, where the
// clock is not real.
func checkSleeps(t *tree, report reporter) {
	t.each(func(_ *pkg, f *file) {
		if !f.test {
			return
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && selected(f, call.Fun, "testing/synctest") == "Test" {
				return false
			}
			if selected(f, n, "time") == "Sleep" {
				report(t.at(n), "time.Sleep in a test", "a sleep is too long or too short; wait for the thing itself, or use testing/synctest")
			}
			return true
		})
	})
}

// checkSkips reports skips outside of the named places and not guarded by
// testing.Short.
func checkSkips(t *tree, report reporter) {
	t.each(func(p *pkg, f *file) {
		if slices.ContainsFunc(skips, func(s struct{ pkg, reason string }) bool { return under(p.path, s.pkg) }) {
			return
		}
		tests := testingParams(f)
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if branch, ok := n.(*ast.IfStmt); ok {
				if call, ok := branch.Cond.(*ast.CallExpr); ok && selected(f, call.Fun, "testing") == "Short" {
					return false
				}
			}
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !strings.HasPrefix(sel.Sel.Name, "Skip") {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(tests, x.Name) && sel.Sel.Name != "Skipped" {
				report(t.at(n), x.Name+"."+sel.Sel.Name, "a skip hides what was not tested; only internal/testenv and the named places decide that")
			}
			return true
		})
	})
}

// testingParams returns the names of the file's parameters of a type of
// package testing.
func testingParams(f *file) []string {
	var names []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		fn, ok := n.(*ast.FuncType)
		if !ok {
			return true
		}
		for _, param := range fn.Params.List {
			typ := param.Type
			if star, ok := typ.(*ast.StarExpr); ok {
				typ = star.X
			}
			if selected(f, typ, "testing") != "" {
				for _, name := range param.Names {
					names = append(names, name.Name)
				}
			}
		}
		return true
	})
	return names
}

// checkInits reports init functions.
func checkInits(t *tree, report reporter) {
	t.each(func(_ *pkg, f *file) {
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report(t.at(fn), "func init", "what happens at start-up is called from main and can fail with an error")
			}
		}
	})
}

// callFiles keep the context of a call in the struct that is the call: both ends of a
// gRPC stream are asked for it.
var callFiles = []string{"emulator/local.go"}

// checkContexts reports contexts kept in structs.
func checkContexts(t *tree, report reporter) {
	t.each(func(_ *pkg, f *file) {
		if slices.Contains(callFiles, f.name) {
			return
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if selected(f, field.Type, "context") == "Context" {
						report(t.at(field), "context.Context in a struct", "a context belongs to a call; kept, it outlives it")
					}
				}
			}
			return true
		})
	})
}

// checkGoroutines reports packages that start goroutines and have tests that
// do not look for leaked ones.
func checkGoroutines(t *tree, report reporter) {
	for _, p := range t.packages {
		var starts ast.Node
		tested, watched := false, false
		for _, f := range p.files {
			tested = tested || f.test
			watched = watched || f.localName("go.uber.org/goleak") != ""
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if _, ok := n.(*ast.GoStmt); ok && !f.test {
					starts = n
				}
				return true
			})
		}
		if starts != nil && tested && !watched {
			report(t.at(starts), p.path+" starts goroutines and its tests do not use goleak", "every goroutine has an owner that waits for it")
		}
	}
}

// selected returns the name that n selects from the imported package, or "".
func selected(f *file, n ast.Node, imported string) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok && x.Name == f.localName(imported) {
		return sel.Sel.Name
	}
	return ""
}
