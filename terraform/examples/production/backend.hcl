bucket = "my-project-terraform"
prefix = "attestry/production"
