package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
)

// checkCommands gives the program the arguments and the environment that each
// container gets.
func checkCommands(t *testing.T, plan *tfjson.Plan) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "attestry")
	run(t, nil, "go", "build", "-o", binary, "../../cmd/attestry")
	seen := 0
	for _, r := range planned(plan) {
		for _, c := range containers(r) {
			seen++
			var env []string
			for _, e := range c["env"].([]any) {
				v := e.(map[string]any)
				value, _ := v["value"].(string)
				switch name := v["name"].(string); {
				case value != "":
					env = append(env, name+"="+value)
				case name == "ATTESTRY_REDIS_URL": // of an address that is known when it is made
					env = append(env, name+"=rediss://10.21.0.3:6378/0")
				default:
					env = append(env, name+"=secret")
				}
			}
			run(t, env, binary, "config", "validate")
			var args []string
			for _, a := range c["args"].([]any) {
				args = append(args, a.(string))
			}
			run(t, env, binary, append(args, "--help")...)
		}
	}
	if seen < 3 {
		t.Errorf("%d containers, want at least the service and two jobs", seen)
	}
}

func run(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	if env != nil {
		cmd.Env = env
	} else {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %q with %q: %v\n%s", filepath.Base(name), args, env, err, out)
	}
}
