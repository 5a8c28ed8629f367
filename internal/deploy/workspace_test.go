package deploy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/attestry/attestry/internal/testenv"
)

const (
	terraformDir = "../../terraform"
	// The lower bound of what the modules ask for. Its schema is that of an older
	// version: see terraform/testing/provider/README.md.
	providerVersion = "7.40.0"
	stack           = "stacks/archive"
)

// roots are the directories that terraform can check by themselves.
func roots() []string {
	return []string{
		"bootstrap", "modules/bigtable", "modules/edge", "modules/identity", "modules/monitoring",
		"modules/network", "modules/redis", "modules/services", stack,
	}
}

func examples() []string { return []string{"minimal", "production"} }

// workspace is a copy of terraform/ whose roots are initialised. What is done to
// it is done to no file of the repository.
type workspace struct {
	tf  *testenv.Terraform
	dir string
}

func newWorkspace(t *testing.T) workspace {
	t.Helper()
	w := workspace{
		tf:  testenv.NewTerraform(t, filepath.Join(terraformDir, "testing", "provider"), providerVersion),
		dir: t.TempDir(),
	}
	copyTree(t, terraformDir, w.dir)
	// The state of a check is nowhere.
	backend := "terraform {\n  backend \"local\" {}\n}\n"
	if err := os.WriteFile(filepath.Join(w.dir, stack, "backend_override.tf"), []byte(backend), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, root := range roots() {
		w.must(t, root, "init", "-no-color")
	}
	return w
}

// clone returns a copy that needs no init.
func (w workspace) clone(t *testing.T) workspace {
	t.Helper()
	c := workspace{tf: w.tf, dir: t.TempDir()}
	copyTree(t, w.dir, c.dir)
	return c
}

func (w workspace) must(t *testing.T, root string, args ...string) string {
	t.Helper()
	out, err := w.tf.Run(t.Context(), filepath.Join(w.dir, root), args...)
	if err != nil {
		t.Fatalf("terraform %s in %s: %v\n%s", strings.Join(args, " "), root, err, out)
	}
	return out
}

// plan plans the stack with the inputs of an example.
func (w workspace) plan(t *testing.T, example string) *tfjson.Plan {
	t.Helper()
	w.must(t, stack, "plan", "-no-color", "-input=false", "-out="+example+".plan",
		"-var-file="+filepath.Join(w.dir, "examples", example, "archive.tfvars"))
	var plan tfjson.Plan
	if err := plan.UnmarshalJSON([]byte(w.must(t, stack, "show", "-json", example+".plan"))); err != nil {
		t.Fatalf("plan of %s: %v", example, err)
	}
	return &plan
}

// copyTree copies files and links. The provider's source stays where it is.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case rel == "testing":
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(link, target))
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o644)
	})
	if err != nil {
		t.Fatalf("copy %s: %v", from, err)
	}
}

// files returns the names of files below dir with a suffix, without what init
// made.
func files(t *testing.T, dir, suffix string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".terraform" || d.Name() == "testing"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, suffix) && d.Name() != "backend_override.tf":
			names = append(names, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// planned returns all resources of a plan, of modules too.
func planned(plan *tfjson.Plan) []*tfjson.StateResource {
	var all []*tfjson.StateResource
	var walk func(*tfjson.StateModule)
	walk = func(m *tfjson.StateModule) {
		all = append(all, m.Resources...)
		for _, child := range m.ChildModules {
			walk(child)
		}
	}
	walk(plan.PlannedValues.RootModule)
	return all
}

// text returns an attribute that is a string, "" for one that is not known.
func text(r *tfjson.StateResource, name string) string {
	s, _ := r.AttributeValues[name].(string)
	return s
}
