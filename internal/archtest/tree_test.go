package archtest

import (
	"bytes"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is the parsed source of the module, every build tag included.
type tree struct {
	fset     *token.FileSet
	packages []*pkg
}

// pkg is one folder of Go files.
type pkg struct {
	path  string // relative to the module
	files []*file
}

type file struct {
	name      string // relative to the module
	test      bool   // ends in _test.go
	generated bool
	faults    bool // built only with the tag faults
	lines     int
	syntax    *ast.File
}

// load parses the module whose root is fsys. Folders that the go tool ignores
// and nested modules are left out.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if ignored(fsys, name) {
				return fs.SkipDir
			}
			return nil
		case path.Ext(name) != ".go":
			return nil
		}
		return t.add(fsys, name)
	})
	return t, err
}

func ignored(fsys fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	if base := path.Base(dir); base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil
}

func (t *tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	// WalkDir visits a folder's files around those of its sub-folders.
	i := slices.IndexFunc(t.packages, func(p *pkg) bool { return p.path == dir })
	if i < 0 {
		i = len(t.packages)
		t.packages = append(t.packages, &pkg{path: dir})
	}
	t.packages[i].files = append(t.packages[i].files, &file{
		name:      name,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
		faults:    needsFaults(syntax),
		lines:     bytes.Count(src, []byte("\n")),
		syntax:    syntax,
	})
	return nil
}

// needsFaults reports whether the file's build constraint asks for the tag
// faults.
func needsFaults(syntax *ast.File) bool {
	for _, group := range syntax.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && c.Pos() < syntax.Package {
				return !expr.Eval(func(tag string) bool { return tag != "faults" })
			}
		}
	}
	return false
}

// each calls f for every file that people write.
func (t *tree) each(f func(*pkg, *file)) {
	for _, p := range t.packages {
		for _, file := range p.files {
			if !file.generated {
				f(p, file)
			}
		}
	}
}

// at renders the position of a node as file:line.
func (t *tree) at(n ast.Node) string {
	pos := t.fset.Position(n.Pos())
	return pos.Filename + ":" + strconv.Itoa(pos.Line)
}

// importPath returns the unquoted path of an import.
func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser took it
	return p
}

// localName returns the name under which f knows the import, or "".
func (f *file) localName(imported string) string {
	for _, spec := range f.syntax.Imports {
		if importPath(spec) == imported {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(imported)
		}
	}
	return ""
}

// under reports whether the slash path p is prefix or lies below it.
func under(p, prefix string) bool {
	return p == prefix || strings.HasPrefix(p, prefix+"/")
}

// underAny reports whether p lies under one of the prefixes.
func underAny(p string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return under(p, prefix) })
}
