package containertest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/attestry/attestry/internal/testenv"
)

const root = "../../"

// composeFile is what compose.yaml may say: a key that is not here is an error, so
// that nothing in it goes untested.
type composeFile struct {
	Name     string             `yaml:"name"`
	Common   yaml.Node          `yaml:"x-attestry"`
	Services map[string]service `yaml:"services"`
}

type service struct {
	Image       string            `yaml:"image"`
	Build       yaml.Node         `yaml:"build"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	ReadOnly    bool              `yaml:"read_only"`
	CapDrop     []string          `yaml:"cap_drop"`
	SecurityOpt []string          `yaml:"security_opt"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck *struct {
		Test     []string      `yaml:"test"`
		Interval time.Duration `yaml:"interval"`
		Timeout  time.Duration `yaml:"timeout"`
		Retries  int           `yaml:"retries"`
		Disable  bool          `yaml:"disable"`
	} `yaml:"healthcheck"`
}

// Conditions of depends_on.
const (
	healthy   = "service_healthy"
	completed = "service_completed_successfully"
)

var variable = regexp.MustCompile(`\$\{([A-Z_]+):-([^}]*)\}`)

// readCompose returns compose.yaml with its variables at their defaults.
func readCompose(t *testing.T) composeFile {
	t.Helper()
	text, err := os.ReadFile(root + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var c composeFile
	decoder := yaml.NewDecoder(strings.NewReader(variable.ReplaceAllString(string(text), "$2")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		t.Fatalf("compose.yaml: %v", err)
	}
	return c
}

// TestComposeFile holds compose.yaml to what must be so in it.
func TestComposeFile(t *testing.T) {
	c := readCompose(t)
	images := map[string]int{}
	for name, s := range c.Services {
		images[s.Image]++
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to other machines", name, p)
			}
		}
		for on, d := range s.DependsOn {
			other, ok := c.Services[on]
			switch {
			case !ok:
				t.Errorf("%s depends on %s, which is not there", name, on)
			case d.Condition == healthy && (other.Healthcheck == nil || other.Healthcheck.Disable):
				t.Errorf("%s waits for the health of %s, which is not checked", name, on)
			case d.Condition != healthy && d.Condition != completed:
				t.Errorf("%s depends on %s by %q", name, on, d.Condition)
			}
		}
		for key := range s.Environment {
			if regexp.MustCompile(`PASSWORD|SECRET|TOKEN|KEY`).MatchString(key) {
				t.Errorf("%s: %s looks like a secret", name, key)
			}
		}
		if own := s.Build.Kind != 0; own && (!s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true")) {
			t.Errorf("%s runs with more rights than it needs: %+v", name, s)
		}
	}
	if len(images) != 3 {
		t.Errorf("images %v: want the emulator's, Redis' and one of ours", images)
	}
	text, err := os.ReadFile(root + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if image, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); ok && !variable.MatchString(image) {
			t.Errorf("image %s cannot come from a mirror: name it by a variable with a default", image)
		}
	}
}

// TestComposeConfig has Docker Compose itself read compose.yaml.
func TestComposeConfig(t *testing.T) {
	command := testenv.Compose(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	file, err := filepath.Abs(root + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(command[1:], []string{"--file", file, "config", "--quiet"})
	if out, err := exec.CommandContext(ctx, command[0], args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
