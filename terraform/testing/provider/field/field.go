// Package field is the form of schema.json, which schemagen writes and the
// stand-in provider reads.
package field

// A Schema holds the fields of each resource type and data source of one version
// of the provider.
type Schema struct {
	Provider    string                      `json:"provider"`
	Version     string                      `json:"version"`
	Resources   map[string]map[string]Field `json:"resources"`
	DataSources map[string]map[string]Field `json:"data_sources"`
}

// A Field is one attribute, or a block if Fields is set.
type Field struct {
	Type      string           `json:"type"`              // string, number, bool, list, set or map
	Element   string           `json:"element,omitempty"` // the type of a list's, set's or map's elements
	Fields    map[string]Field `json:"fields,omitempty"`
	Required  bool             `json:"required,omitempty"`
	Optional  bool             `json:"optional,omitempty"`
	Computed  bool             `json:"computed,omitempty"`
	Single    bool             `json:"single,omitempty"` // a block that may be there once
	WriteOnly bool             `json:"write_only,omitempty"`
	Values    []string         `json:"values,omitempty"` // all documented values
}
