package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkVars reports package-level variables that are not constants in all but
// name. A variable passes if it has its value from its declaration or embeds it,
// if nothing in the package, tests included, writes to it, if it is not made to
// be filled (make, new, a lock, an atomic), and if it is not exported, error
// sentinels excepted.
func checkVars(t *tree, report reporter) {
	const reason = "state belongs to a value that someone constructs, owns and can have twice"
	for _, p := range t.packages {
		written := writtenNames(p)
		for _, f := range p.files {
			if f.test || f.generated {
				continue
			}
			for _, spec := range packageVars(f) {
				for i, name := range spec.Names {
					if what := mutable(f, spec, i, written[name.Name]); what != "" {
						report(t.at(name), "variable "+name.Name+" "+what, reason)
					}
				}
			}
		}
	}
}

// packageVars returns the file's package-level variables, without embedded
// files.
func packageVars(f *file) []*ast.ValueSpec {
	var specs []*ast.ValueSpec
	for _, decl := range f.syntax.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec)
			if !embeds(gen.Doc) && !embeds(spec.Doc) {
				specs = append(specs, spec)
			}
		}
	}
	return specs
}

func embeds(doc *ast.CommentGroup) bool {
	if doc != nil {
		for _, c := range doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// mutable returns what makes the spec's i-th variable mutable, or "".
func mutable(f *file, spec *ast.ValueSpec, i int, written bool) string {
	name := spec.Names[i].Name
	switch {
	case name == "_":
		return ""
	case len(spec.Values) == 0:
		return "has no value and waits for one"
	case written:
		return "is written after its declaration"
	case ast.IsExported(name) && !strings.HasPrefix(name, "Err"):
		return "is exported and can be written by anyone; export a function"
	case len(spec.Values) > i && fillable(f, spec.Values[i]):
		return "is made to be filled"
	}
	return ""
}

// fillable reports whether the value is one that only makes sense if it is
// changed later. A sync.Pool holds nothing that can be observed.
func fillable(f *file, value ast.Expr) bool {
	if unary, ok := value.(*ast.UnaryExpr); ok {
		value = unary.X
	}
	switch v := value.(type) {
	case *ast.CallExpr:
		fn, ok := v.Fun.(*ast.Ident)
		return ok && (fn.Name == "make" || fn.Name == "new")
	case *ast.CompositeLit:
		locks := selected(f, v.Type, "sync")
		return locks != "" && locks != "Pool" || selected(f, v.Type, "sync/atomic") != ""
	}
	return false
}

// writtenNames returns the identifiers that the package's code assigns to,
// through an index, field or pointer too. A local of the same name counts as
// well: a local should not shadow a table.
func writtenNames(p *pkg) map[string]bool {
	written := map[string]bool{}
	note := func(e ast.Expr) {
		if name := root(e); name != "" {
			written[name] = true
		}
	}
	for _, f := range p.files {
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, lhs := range n.Lhs {
						note(lhs)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			}
			return true
		})
	}
	return written
}

// root returns the identifier at the left end of x, x.f, x[i] and *x.
func root(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return root(e.X)
	case *ast.SelectorExpr:
		return root(e.X)
	case *ast.StarExpr:
		return root(e.X)
	case *ast.ParenExpr:
		return root(e.X)
	}
	return ""
}
