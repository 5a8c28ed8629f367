bucket = "my-project-terraform"
prefix = "attestry/minimal"
