// Command attestry is an archive of Wormhole attestations.
package main

import (
	"os"

	"github.com/attestry/attestry/internal/cli"
)

func main() { os.Exit(cli.Main()) }
