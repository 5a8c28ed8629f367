package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/attestry/attestry/terraform/testing/provider/field"
)

var (
	classStart = regexp.MustCompile(`(?m)^export (?:class|interface|function) (\w+)`)
	fieldStart = regexp.MustCompile(`(?m)^  // (\w+) - computed: (true|false), optional: (true|false), required: (true|false)$`)
	getter     = regexp.MustCompile(`this\.get(\w+)Attribute\('`)
	nested     = regexp.MustCompile(`new (\w+?)(List|OutputReference)\(this, "\w+"(?:, (true|false))?\)`)
	builtin    = regexp.MustCompile(`new cdktf\.(\w+)\(this, "`)
	asSet      = regexp.MustCompile(`Fn\.tolist\(this\.get`)
	hclKind    = regexp.MustCompile(`(?s)\n      (\w+): \{\n        value: [^\n]*\n        isBlock: (?:true|false),\n        type: "(\w+)",`)
	hclKind4   = regexp.MustCompile(`(?s)\n    (\w+): \{\n      value: [^\n]*\n      isBlock: (?:true|false),\n      type: "(\w+)",`)
	document   = regexp.MustCompile(`(?s)/\*\*(.*?)\*/\n  readonly (\w+)\??:`)
	docName    = regexp.MustCompile(`#(\w+) \w+#\w+\}`)
	possible   = regexp.MustCompile(`Possible values: \[([^\]]*)\]`)
)

// source is one type's TypeScript by its parts.
type source struct {
	parts map[string]string // text of each class, interface and function by name
}

func parse(text, resource string) (map[string]field.Field, error) {
	s := source{parts: map[string]string{}}
	starts := classStart.FindAllStringSubmatchIndex(text, -1)
	main := ""
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		name, part := text[at[2]:at[3]], text[at[0]:end]
		s.parts[name] += part
		if strings.Contains(part, `tfResourceType = "`+resource+`"`) {
			main = name
		}
	}
	if main == "" {
		return nil, fmt.Errorf("no class of the type")
	}
	return s.fields(s.parts[main], s.parts[main+"Config"], s.parts[main])
}

// fields reads the fields that a class documents. The interface of the same struct
// documents their values, and hcl says which blocks are sets.
func (s source) fields(class, iface, hcl string) (map[string]field.Field, error) {
	kinds := map[string]string{}
	for _, re := range []*regexp.Regexp{hclKind, hclKind4} {
		for _, m := range re.FindAllStringSubmatch(hcl, -1) {
			kinds[m[1]] = m[2]
		}
	}
	values := documented(iface)
	fields := map[string]field.Field{}
	starts := fieldStart.FindAllStringSubmatchIndex(class, -1)
	for i, at := range starts {
		end := len(class)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		name := class[at[2]:at[3]]
		f := field.Field{
			Computed: class[at[4]:at[5]] == "true", Optional: class[at[6]:at[7]] == "true", Required: class[at[8]:at[9]] == "true",
			WriteOnly: strings.HasSuffix(name, "_wo"), Values: values[name],
		}
		if err := s.setType(&f, class[at[1]:end], kinds[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if f.Type != "string" {
			f.Values = nil
		}
		fields[name] = f
	}
	return fields, nil
}

func (s source) setType(f *field.Field, body, kind string) error {
	if m := nested.FindStringSubmatch(body); m != nil && m[1] != "cdktf" {
		f.Type, f.Single = "list", m[2] == "OutputReference"
		if kind == "set" || m[3] == "true" {
			f.Type = "set"
		}
		function := strings.ToLower(m[1][:1]) + m[1][1:] + "ToHclTerraform"
		var err error
		f.Fields, err = s.fields(s.parts[m[1]+"OutputReference"], s.parts[m[1]], s.parts[function])
		return err
	}
	of := ""
	if m := builtin.FindStringSubmatch(body); m != nil {
		of = m[1]
	} else if m := getter.FindStringSubmatch(body); m != nil {
		of = m[1]
	}
	simple := map[string]string{"String": "string", "Number": "number", "Boolean": "bool"}
	switch base := strings.TrimSuffix(strings.TrimSuffix(of, "List"), "Map"); {
	case simple[of] != "":
		f.Type = simple[of]
	case of == "List":
		f.Type, f.Element = "list", "string"
	case strings.HasSuffix(of, "List"):
		f.Type, f.Element = "list", simple[base]
	case strings.HasSuffix(of, "Map"):
		f.Type, f.Element = "map", simple[base]
	}
	if f.Type == "" || strings.HasSuffix(of, "List") && f.Element == "" || strings.HasSuffix(of, "Map") && f.Element == "" {
		return fmt.Errorf("type %q is unknown in %q", of, firstLines(body))
	}
	if f.Type == "list" && (kind == "set" || asSet.MatchString(body)) {
		f.Type = "set"
	}
	return nil
}

// documented returns the values that an interface's comments list, by field.
func documented(iface string) map[string][]string {
	all := map[string][]string{}
	for _, m := range document.FindAllStringSubmatch(iface, -1) {
		name, list := docName.FindStringSubmatch(m[1]), possible.FindStringSubmatch(m[1])
		if name == nil || list == nil {
			continue
		}
		for v := range strings.SplitSeq(list[1], ",") {
			all[name[1]] = append(all[name[1]], strings.Trim(strings.TrimSpace(v), `"`))
		}
	}
	return all
}

func firstLines(s string) string { return s[:min(len(s), 200)] }
