package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/validation"

	"github.com/attestry/attestry/terraform/testing/provider/field"
)

// schemaJSON is written by schemagen.
//
//go:embed schema.json
var schemaJSON []byte

// newProvider returns the provider of the embedded schema. The file is part of the
// program, so one that does not decode is a fault of the build.
func newProvider() *schema.Provider {
	var known field.Schema
	if err := json.Unmarshal(schemaJSON, &known); err != nil {
		panic(fmt.Sprintf("embedded schema: %v", err))
	}
	optional := &schema.Schema{Type: schema.TypeString, Optional: true}
	p := &schema.Provider{
		Schema: map[string]*schema.Schema{
			"project": optional, "region": optional, "zone": optional,
			"billing_project": optional, "impersonate_service_account": optional,
			"user_project_override": {Type: schema.TypeBool, Optional: true},
			"default_labels":        {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
		},
		ResourcesMap:   map[string]*schema.Resource{},
		DataSourcesMap: map[string]*schema.Resource{},
	}
	for name, fields := range known.Resources {
		p.ResourcesMap[name] = resource(fields)
	}
	for name, fields := range known.DataSources {
		p.DataSourcesMap[name] = &schema.Resource{Schema: schemas(without(fields, "id")), ReadContext: found(fields)}
	}
	return p
}

// resource is one that exists from its creation on and does nothing.
func resource(fields map[string]field.Field) *schema.Resource {
	r := &schema.Resource{
		CreateContext: setID,
		ReadContext:   nothing,
		UpdateContext: nothing,
		DeleteContext: nothing,
	}
	if timeouts, ok := fields["timeouts"]; ok {
		fields = without(fields, "timeouts")
		r.Timeouts = &schema.ResourceTimeout{}
		limit := 20 * time.Minute
		for name, of := range map[string]**time.Duration{
			"create": &r.Timeouts.Create, "read": &r.Timeouts.Read,
			"update": &r.Timeouts.Update, "delete": &r.Timeouts.Delete,
		} {
			if _, ok := timeouts.Fields[name]; ok {
				*of = &limit
			}
		}
	}
	r.Schema = schemas(without(fields, "id")) // which every resource has of itself
	return r
}

func schemas(fields map[string]field.Field) map[string]*schema.Schema {
	all := map[string]*schema.Schema{}
	for name, f := range fields {
		all[name] = convert(f)
	}
	return all
}

func convert(f field.Field) *schema.Schema {
	s := &schema.Schema{Type: valueType(f.Type), Required: f.Required, Optional: f.Optional, Computed: f.Computed, WriteOnly: f.WriteOnly}
	switch s.Type {
	case schema.TypeList, schema.TypeSet, schema.TypeMap:
		if f.Fields != nil {
			s.Elem = &schema.Resource{Schema: schemas(f.Fields)}
			// What is only computed is an attribute and has no number of blocks.
			if f.Single && (f.Required || f.Optional) {
				s.MaxItems = 1
			}
		} else {
			s.Elem = &schema.Schema{Type: valueType(f.Element)}
		}
	case schema.TypeString:
		if len(f.Values) > 0 {
			s.ValidateFunc = validation.StringInSlice(append(slices.Clone(f.Values), ""), false)
		}
	}
	return s
}

func valueType(name string) schema.ValueType {
	return map[string]schema.ValueType{
		"string": schema.TypeString, "number": schema.TypeFloat, "bool": schema.TypeBool,
		"list": schema.TypeList, "set": schema.TypeSet, "map": schema.TypeMap,
	}[name]
}

func without(fields map[string]field.Field, name string) map[string]field.Field {
	rest := map[string]field.Field{}
	for k, f := range fields {
		if k != name {
			rest[k] = f
		}
	}
	return rest
}

func setID(_ context.Context, d *schema.ResourceData, _ any) diag.Diagnostics {
	d.SetId(strconv.FormatInt(time.Now().UnixNano(), 36))
	return nil
}

// found reads data that exist. What is computed of them is "1", which is fit to be a
// number too.
func found(fields map[string]field.Field) schema.ReadContextFunc {
	return func(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
		for name, f := range without(fields, "id") {
			if f.Computed && !f.Optional && f.Type == "string" {
				if err := d.Set(name, "1"); err != nil {
					return diag.FromErr(err)
				}
			}
		}
		return setID(ctx, d, meta)
	}
}

func nothing(context.Context, *schema.ResourceData, any) diag.Diagnostics { return nil }
