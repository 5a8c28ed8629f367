package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/attestry/attestry/emulator"
)

const (
	serveOurs       = "serve-ours"
	serveCanned     = "serve-canned"
	defaultEmulator = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"
	startTimeout    = 30 * time.Second
)

// server is a server in a process of its own, and the client of it.
type server struct {
	name   string
	cmd    *exec.Cmd
	conn   *grpc.ClientConn
	client *bigtable.Client
	table  *bigtable.Table
	args   []string
	errs   io.Writer
}

// serve is the process of our server.
func serve(ctx context.Context, dir string, out io.Writer) error {
	s, err := emulator.Create(dir, emulator.Options{})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Fprintln(out, "listening on", l.Addr())
	context.AfterFunc(ctx, func() { s.Close() }) //nolint:errcheck // the process ends
	return s.Serve(l)
}

func startAll(ctx context.Context, c config) ([]*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	commands := map[string][]string{
		"ours":        {self, serveOurs, filepath.Join(c.dir, "ours")},
		"cbtemulator": {c.cbtemulator, "-port=0"},
		"canned":      {self, serveCanned, strconv.Itoa(c.rows)},
	}
	var servers []*server
	for _, name := range strings.Split(c.servers, ",") {
		args, ok := commands[name]
		if !ok {
			return servers, fmt.Errorf("-servers: %q is unknown", name)
		}
		if _, err := os.Stat(args[0]); err != nil {
			fmt.Fprintf(c.errs, "bench: %s is left out: %v\n", name, err)
			continue
		}
		s := &server{name: name, args: args, errs: c.errs}
		if err := s.start(ctx); err != nil {
			return servers, fmt.Errorf("start %s: %w", name, err)
		}
		servers = append(servers, s)
		if err := s.createTable(ctx); err != nil {
			return servers, fmt.Errorf("make a table on %s: %w", name, err)
		}
	}
	return servers, nil
}

// start starts the process and waits for the line that ends with its address.
func (s *server) start(ctx context.Context) error {
	s.cmd = exec.CommandContext(ctx, s.args[0], s.args[1:]...)
	s.cmd.Stderr = s.errs
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGINT) }
	s.cmd.WaitDelay = startTimeout
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.Join(fmt.Errorf("read its address: %w", err), s.kill())
	}
	words := strings.Fields(line)
	addr := words[len(words)-1]
	s.conn, err = grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s.client, err = bigtable.NewClientWithConfig(ctx, "bench", "bench", bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}},
		option.WithGRPCConn(s.conn))
	if err != nil {
		return err
	}
	s.table = s.client.Open(tableName)
	return nil
}

func (s *server) createTable(ctx context.Context) error {
	admin, err := bigtable.NewAdminClient(ctx, "bench", "bench", option.WithGRPCConn(s.conn))
	if err != nil {
		return err
	}
	families := map[string]bigtable.Family{}
	for _, f := range familyNames() {
		families[f] = bigtable.Family{GCPolicy: bigtable.NoGcPolicy()}
	}
	return admin.CreateTableFromConf(ctx, &bigtable.TableConf{TableID: tableName, ColumnFamilies: families})
}

func (s *server) stop() error {
	if s.client == nil {
		return nil
	}
	return errors.Join(s.client.Close(), s.kill())
}

func (s *server) kill() error {
	err := s.cmd.Process.Kill()
	s.cmd.Wait() //nolint:errcheck // it was killed
	return err
}

// cpu returns the processor time that the process has used, from /proc.
func (s *server) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second field is a name in parentheses; user and system time are the 14th
	// and 15th (proc_pid_stat(5)), in hundredths of a second.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// resident returns the resident memory of the process, in bytes.
func (s *server) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
