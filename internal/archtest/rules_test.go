package archtest

const modulePath = "github.com/attestry/attestry"

// Sizes that a reader can hold in mind.
const (
	maxFileLines        = 500
	maxPackageFiles     = 12 // without tests
	maxInterfaceMethods = 5
	maxMainLines        = 30
)

// floors places every package; the longest prefix decides. A package imports
// lower floors, and on its own floor only its own family (the packages below
// the same entry) and what sideways lists.
var floors = []struct {
	prefix string
	floor  int
	reason string
}{
	{"vaa", 0, "the wire format can be imported by anyone and stands on nothing of ours"},
	{"bigtable/rowkey", 0, "keys are pure functions of message ids"},
	{"bigtable/schema", 0, "table definitions are data, from which terraform is generated"},
	{"internal/testenv", 0, "test servers know nothing of what is tested on them"},
	{"internal/archtest", 0, "the architecture is judged from outside"},
	{"archive", 1, "the port speaks of VAAs and of nothing that stores them"},
	{"bigtable", 2, "an adapter of the port; others see only the port"},
	{"feed", 2, "delivery reads the port and does not know who writes behind it"},
	{"emulator", 2, "a Bigtable server knows nothing of attestations"},
	{"ingest", 3, "writers know the port, not the store or the feed behind it"},
	{"derive", 3, "consumers of the journal know neither its writers nor its readers"},
	{"query", 3, "the read service does not know who writes"},
	{"internal/fsck", 3, "the checker shares no code with the writers that it checks"},
	{"internal/deploy", 3, "the deployment takes its tables from the schema, and is compared with what the adapter makes"},
	{"internal/bench", 3, "benchmarks drive the program's parts from above"},
	{"internal/sim", 3, "the simulation drives the program's parts from above"},
	{"internal/crashtest", 4, "the drills drive the whole program from outside"},
	{"internal/clienttest", 4, "clients of others drive the whole program from outside"},
	{"internal/containertest", 4, "containers are driven from outside, as the platform does"},
	{"internal/run", 4, "assembly of the parts to services"},
	{"internal/cli", 4, "the edge: flags, environment, files, exit codes"},
	{"cmd/attestry", 4, "main"},
}

// sideways lists the imports allowed between families of one floor.
var sideways = []struct{ from, to, reason string }{
	{"bigtable/rowkey", "vaa", "a row key is a spelling of a message id"},
	{"bigtable/schema", "vaa", "a table's name carries its network"},
	{"bigtable/schema", "bigtable/rowkey", "the schema documents its keys"},
	{"internal/sim", "ingest", "the simulation runs the production code of classify, append and apply"},
	{"internal/bench", "ingest", "benchmarks measure it"},
	{"internal/bench", "query", "benchmarks measure it"},
	{"internal/bench", "internal/fsck", "a benchmark's result is checked"},
	{"internal/cli", "internal/run", "commands start services"},
	{"cmd/attestry", "internal/cli", "main calls the command tree"},
}

// bans lists imports that a package may not have although their floor would
// allow it, with what is excepted below them. Tests are exempt.
var bans = []struct {
	pkg     string
	imports []string
	except  []string
	reason  string
}{
	{"vaa", impure, nil, "the wire format does no I/O, takes no context and writes no log"},
	{"bigtable/rowkey", impure, nil, "keys are pure"},
	{"bigtable/schema", impure, nil, "the schema is pure"},
	{"archive", []string{"net", "os"}, nil, "the port is vocabulary and does no I/O"},
	{"ingest", []string{modulePath + "/bigtable", modulePath + "/feed"}, pureBigtable, "ingest knows the port and its own small interfaces, neither Bigtable nor Redis"},
	{"emulator", []string{modulePath}, []string{modulePath + "/emulator"}, "the emulator is an island: it imports none of ours"},
}

// impure are the imports that pure packages do without.
var impure = []string{"cloud.google.com", "context", "go.uber.org/zap", "google.golang.org/grpc", "log", "net", "os"}

// pureBigtable are the names of rows and columns, which the port shares.
var pureBigtable = []string{modulePath + "/bigtable/rowkey", modulePath + "/bigtable/schema"}

// confined lists imports that only some packages may have, at any depth below
// them. Tests are exempt.
var confined = []struct {
	imports string
	to      []string
	reason  string
}{
	{"cloud.google.com/go/bigtable", []string{"bigtable", "emulator", "internal/run", "internal/testenv"}, "one adapter speaks Bigtable, all else speaks the port"},
	{"github.com/redis/go-redis", []string{"feed", "internal/run"}, "every Redis key is built and every command is sent in feed"},
	{"github.com/alicebob/miniredis", []string{"feed", "internal/run"}, "every Redis key is built and every command is sent in feed"},
	{"github.com/cockroachdb/pebble", []string{"emulator"}, "the storage engine is a matter of the embedded store"},
	{"github.com/ethereum/go-ethereum", []string{"ingest/source/evm"}, "a heavy dependency stays with the one source that needs it"},
	{"github.com/spf13/cobra", []string{"internal/cli"}, "only the edge reads flags"},
	{"github.com/spf13/pflag", []string{"internal/cli"}, "only the edge reads flags"},
	{"flag", []string{"internal/cli", "emulator/bench"}, "only the edge reads flags"},
	{"os/signal", []string{"internal/cli", "cmd/attestry", "emulator/bench"}, "signals end at the edge and go on as a cancelled context"},
	{"testing", []string{"archive/archivetest", "internal/testenv", "vaa/vaatest"}, "test code stays out of the binary"},
	{modulePath + "/archive/archivetest", nil, "test code stays out of the binary"},
	{modulePath + "/internal/testenv", nil, "test code stays out of the binary"},
	{modulePath + "/query/internal/querytest", nil, "test code stays out of the binary"},
	{modulePath + "/vaa/vaatest", []string{"archive/archivetest", "internal/bench", "internal/sim"}, "test guardians sign nothing in production"},
	{"log", nil, "one logger (zap), handed down by constructors"},
	{"github.com/spf13/viper", nil, "configuration is a struct read at one place"},
}

// banned lists imports that nobody may have, tests included.
var banned = []struct{ imports, reason string }{
	{"github.com/stretchr/testify", "go-cmp and plain comparisons say what differs"},
	{"github.com/golang/mock", "tests run against the real thing or a hand-written stand-in"},
	{"go.uber.org/mock", "tests run against the real thing or a hand-written stand-in"},
}

// uses lists functions and variables that only some packages may touch.
// Tests are exempt, and so are files of the build tag faults, which is never
// released.
var uses = []struct {
	imported string
	names    []string
	in       []string
	reason   string
}{
	{"os", []string{"Environ", "ExpandEnv", "Getenv", "LookupEnv"}, []string{"internal/cli", "internal/testenv"}, "only the edge reads the environment; below it, configuration is an argument"},
	{"os", []string{"Args", "Exit", "Stderr", "Stdin", "Stdout"}, []string{"internal/cli", "cmd/attestry", "emulator/bench"}, "only the edge knows arguments, exit codes and standard streams"},
	{"fmt", []string{"Print", "Printf", "Println"}, nil, "output goes to the writer that a command was given"},
	{"time", []string{"Sleep"}, nil, "a sleep does not end with its context; wait on a timer and the context"},
}

// skips lists the packages whose tests may skip without testing.Short.
var skips = []struct{ pkg, reason string }{
	{"internal/testenv", "the one place that knows which servers a machine has"},
	{"archive/archivetest", "capabilities that an implementation lacks are skipped out loud"},
	{"emulator/filter", "a random pattern that does not compile is drawn again"},
	{"bigtable", "servers named by the environment or run in containers may be absent"},
}
