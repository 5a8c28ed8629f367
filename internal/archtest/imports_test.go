package archtest

import "strings"

// checkFloors reports packages without a floor and imports that do not go
// down.
func checkFloors(t *tree, report reporter) {
	for _, p := range t.packages {
		from := floorOf(p.path)
		if from < 0 {
			report(p.path, "the package has no floor", "every package has its place; give it one in internal/archtest/rules_test.go")
			continue
		}
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				imported, ours := strings.CutPrefix(importPath(spec), modulePath+"/")
				to := floorOf(imported)
				if !ours || to < 0 || floors[to].floor < floors[from].floor || sameFloorAllowed(p.path, from, imported, to, f.test) {
					continue
				}
				report(t.at(spec), p.path+" (floor "+itoa(floors[from].floor)+") imports "+imported+" (floor "+itoa(floors[to].floor)+")", floors[from].reason)
			}
		}
	}
}

// floorOf returns the index in floors of the entry that places the package,
// or -1.
func floorOf(path string) int {
	best := -1
	for i, f := range floors {
		if under(path, f.prefix) && (best < 0 || len(f.prefix) > len(floors[best].prefix)) {
			best = i
		}
	}
	return best
}

// sameFloorAllowed decides on an import that is not of a lower floor. Tests
// may import all of their own floor.
func sameFloorAllowed(path string, from int, imported string, to int, test bool) bool {
	if floors[from].floor != floors[to].floor {
		return false
	}
	if test || from == to {
		return true
	}
	for _, s := range sideways {
		if under(path, s.from) && under(imported, s.to) {
			return true
		}
	}
	return false
}

// checkImports reports banned and misplaced imports.
func checkImports(t *tree, report reporter) {
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, spec := range f.syntax.Imports {
				if reason := importReason(p.path, importPath(spec), f.test); reason != "" {
					report(t.at(spec), p.path+" imports "+importPath(spec), reason)
				}
			}
		}
	}
}

// importReason returns why the package may not have the import, or "".
func importReason(path, imported string, test bool) string {
	for _, b := range banned {
		if under(imported, b.imports) {
			return b.reason
		}
	}
	if test {
		return ""
	}
	for _, b := range bans {
		if under(path, b.pkg) && underAny(imported, b.imports) && !underAny(imported, b.except) {
			return b.reason
		}
	}
	for _, c := range confined {
		if under(imported, c.imports) && !underAny(path, c.to) {
			return c.reason
		}
	}
	return ""
}
