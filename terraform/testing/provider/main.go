// Command provider is a stand-in for the terraform provider hashicorp/google: a
// test double that knows names and types and no Google Cloud. README.md says what
// it proves and what it does not.
package main

import (
	"github.com/hashicorp/terraform-plugin-sdk/v2/plugin"
)

func main() {
	plugin.Serve(&plugin.ServeOpts{
		ProviderAddr: "registry.terraform.io/hashicorp/google",
		ProviderFunc: newProvider,
	})
}
