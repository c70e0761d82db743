package protocol

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/sundial-mq/sundial/internal/remoting"
)

// plan is how one struct type lies in the fields of a header.
type plan struct {
	fields []planField
}

type planField struct {
	name     string
	required bool
	index    int
	pointer  bool // a nil pointer is an absent field
	kind     reflect.Kind
}

// plans caches the plan of each struct type that ever was a header.
var plans sync.Map // reflect.Type to *plan

// planOf reads the struct tags `h:"name"` and `h:"name,required"`; fields
// without a tag are no part of the header.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("h")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		pf := planField{name: name, required: option == "required", index: i, kind: f.Type.Kind()}
		if pf.kind == reflect.Pointer {
			pf.pointer, pf.kind = true, f.Type.Elem().Kind()
		}
		switch pf.kind {
		case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
		default:
			panic(fmt.Sprintf("protocol: field %s of %s has a type that no header has", f.Name, t))
		}
		p.fields = append(p.fields, pf)
	}
	actual, _ := plans.LoadOrStore(t, p)
	return actual.(*plan)
}

// DecodeFields fills the struct that v points to from a header's fields, by its
// `h` tags. Of a field that comes twice the last one counts; unknown fields are
// ignored. Strings alias the frame.
func DecodeFields(fields []remoting.Field, v any) error {
	sv := reflect.ValueOf(v).Elem()
	for _, pf := range planOf(sv.Type()).fields {
		value, ok := lookupField(fields, pf.name)
		// An empty number is an absent one: the binary header cannot tell them apart.
		if !ok || value == "" && pf.kind != reflect.String {
			if pf.required {
				return missingField(pf.name)
			}
			continue
		}
		dst := sv.Field(pf.index)
		if pf.pointer {
			dst.Set(reflect.New(dst.Type().Elem()))
			dst = dst.Elem()
		}
		switch pf.kind {
		case reflect.String:
			dst.SetString(value)
		case reflect.Bool:
			dst.SetBool(fieldBool(value))
		case reflect.Int32:
			var n int32
			if err := fieldInt32(pf.name, value, &n); err != nil {
				return err
			}
			dst.SetInt(int64(n))
		case reflect.Int64:
			var n int64
			if err := fieldInt64(pf.name, value, &n); err != nil {
				return err
			}
			dst.SetInt(n)
		}
	}
	return nil
}

// EncodeFields is the reverse of [DecodeFields]: the fields of the struct that
// v points to, in the order of declaration. Nil pointers and empty strings that
// are not required are left out.
func EncodeFields(v any) []remoting.Field {
	sv := reflect.ValueOf(v).Elem()
	p := planOf(sv.Type())
	out := make([]remoting.Field, 0, len(p.fields))
	for _, pf := range p.fields {
		src := sv.Field(pf.index)
		if pf.pointer {
			if src.IsNil() {
				continue
			}
			src = src.Elem()
		}
		var text string
		switch pf.kind {
		case reflect.String:
			if text = src.String(); text == "" && !pf.required && !pf.pointer {
				continue
			}
		case reflect.Bool:
			text = strconv.FormatBool(src.Bool())
		default:
			text = itoa(src.Int())
		}
		out = append(out, remoting.Field{Key: pf.name, Value: text})
	}
	return out
}

// lookupField finds the last field of that name.
func lookupField(fields []remoting.Field, name string) (string, bool) {
	for i := len(fields) - 1; i >= 0; i-- {
		if fields[i].Key == name {
			return fields[i].Value, true
		}
	}
	return "", false
}
