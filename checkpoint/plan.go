package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tidemill/tidemill/internal/vfs"
)

// Plan is plan.json: what of a query its checkpoint depends on. Operators and
// sources have names that come from their kind and keys, not from their position,
// so that a query may change around them.
type Plan struct {
	Operators []Operator `json:"operators"`
	Sources   []Source   `json:"sources"`
	// Settings are the pinned settings.
	Settings map[string]string `json:"settings"`
	Checksum string            `json:"checksum"`
}

// Operator is a stateful operator.
type Operator struct {
	Name string `json:"name"` // agg(window_start)
	Kind string `json:"kind"` // stateStoreSave, dedupe, …
	// Fingerprint stands for what the state means: keys, aggregates, join
	// condition. Text tells it to people; it is not compared.
	Fingerprint string `json:"fingerprint"`
	Text        string `json:"text"`
	// Former is the Text that engines gave the operator which kept less of it; "" where
	// there is none, and in plan.json.
	Former string `json:"-"`
	// Reads is what the state is made of; nil in checkpoints of engines that did not
	// write it, which get it at their next start.
	Reads  *Reads       `json:"reads,omitempty"`
	Tables []StateTable `json:"tables"`
	// Variables are the named state variables of a user's function. One may be added,
	// none may change or go.
	Variables []Variable `json:"variables,omitempty"`
}

// Variable is a state variable of a user's function; its values are in the table of
// its name.
type Variable struct {
	Name string `json:"name"`
	Kind string `json:"kind"`          // value, list, map
	Type string `json:"type"`          // columns with types
	TTL  string `json:"ttl,omitempty"` // time to live
}

func (v Variable) String() string {
	text := v.Kind + " of " + v.Type
	if v.TTL != "" {
		text += " with TTL " + v.TTL
	}
	return text
}

// StateTable is one table of an operator's state.
type StateTable struct {
	Name  string  `json:"name"`
	Key   []Field `json:"key"`
	Value []Field `json:"value"`
}

// Field is a column. Names of value columns may change, types may not.
type Field struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable"`
}

// Source is a stream the query reads.
type Source struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // filesystem, …
	// Identity is what must not change: for files the path.
	Identity string `json:"identity"`
	// Schemas are the pinned columns, a version each time they were widened,
	// empty for a source whose columns are declared.
	Schemas []SourceSchema `json:"schemas"`
}

// SourceSchema is a version of the pinned columns of a source.
type SourceSchema struct {
	Version int64   `json:"version"`
	Columns []Field `json:"columns"`
	// Options are pinned findings beside the columns, such as header.
	Options map[string]string `json:"options"`
}

// withoutReads is the plan as engines saw it that did not write what operators read.
func (p Plan) withoutReads() Plan {
	p.Operators = slices.Clone(p.Operators)
	for i := range p.Operators {
		p.Operators[i].Reads = nil
	}
	return p
}

// IsFormer says whether the plan is of an engine that wrote what operators read in the
// form FormerReads, or not at all.
func (p Plan) IsFormer() bool {
	return slices.ContainsFunc(p.Operators, func(o Operator) bool { return o.Reads == nil || o.Reads.Form == FormerReads })
}

// Fingerprint stands for everything that Compare looks at.
func (p Plan) Fingerprint() string {
	p.Checksum = ""
	p.Sources = slices.Clone(p.Sources)
	for i := range p.Sources {
		p.Sources[i].Schemas = nil
	}
	p.Operators = slices.Clone(p.Operators)
	for i := range p.Operators {
		p.Operators[i].Text = ""
	}
	return HashBytes(mustPretty(p))
}

// Verdict is what a changed query means for a part of its checkpoint.
type Verdict string

// The verdicts. A refused part keeps the query from starting on the checkpoint.
const (
	Kept    Verdict = "kept"
	Refused Verdict = "refused"
)

// Finding is the verdict on one operator, source or setting.
type Finding struct {
	Part    string // operator, source, setting
	Name    string
	Verdict Verdict
	Text    string // what changed, and how; of a Kept part what goes on with the state of before
}

// Compare says what a query with the plan now keeps of a checkpoint made with the
// plan p, in the order of p, then what is new.
func (p Plan) Compare(now Plan) []Finding {
	var found []Finding
	add := func(part, name, text string) {
		verdict := Kept
		if text != "" {
			verdict = Refused
			text = fmt.Sprintf("%s %s: %s", part, name, text)
		}
		found = append(found, Finding{Part: part, Name: name, Verdict: verdict, Text: text})
	}
	for _, was := range p.Operators {
		add("operator", was.Name, compareOperator(was, now.Operators))
		if f := &found[len(found)-1]; f.Verdict == Kept {
			f.Text = otherFilters(was, now.Operators)
		}
	}
	for _, is := range now.Operators {
		if !slices.ContainsFunc(p.Operators, func(o Operator) bool { return o.Name == is.Name }) {
			add("operator", is.Name, "it is new; its state would lack the rows of the batches before")
		}
	}
	for _, was := range p.Sources {
		add("source", was.Name, compareSource(was, now.Sources))
	}
	for _, is := range now.Sources {
		if !slices.ContainsFunc(p.Sources, func(s Source) bool { return s.Name == is.Name }) {
			add("source", is.Name, "it is new; the checkpoint has no position for it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(union(p.Settings, now.Settings))) {
		was, is := p.Settings[key], now.Settings[key]
		text := ""
		if was != is {
			text = fmt.Sprintf("it was %q and is now %q", was, is)
		}
		add("setting", key, text)
	}
	return found
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// keptLess refuses a state that the query itself would not have to change for.
const keptLess = "an earlier engine made its state, which does not hold how the first row of a group writes a key of type INTERVAL or MAP, " +
	"and this one does; start over with a new checkpoint and a new output"

// compareOperator says how the operator changed, "" if it did not.
func compareOperator(was Operator, all []Operator) string {
	i := slices.IndexFunc(all, func(o Operator) bool { return o.Name == was.Name })
	if i < 0 {
		return "it is gone from the query"
	}
	is := all[i]
	switch {
	case was.Kind != is.Kind:
		return fmt.Sprintf("it was %s and is now %s", was.Kind, is.Kind)
	case was.Fingerprint != is.Fingerprint && was.Text == is.Former:
		return keptLess
	case was.Fingerprint != is.Fingerprint && was.Text != is.Text:
		return fmt.Sprintf("it was %s and is now %s", was.Text, is.Text)
	case was.Fingerprint != is.Fingerprint:
		return "its meaning changed"
	}
	if text := compareReads(was.Reads, is.Reads); text != "" {
		return text
	}
	if text := compareVariables(was.Variables, is.Variables); text != "" {
		return text
	}
	for _, table := range was.Tables {
		j := slices.IndexFunc(is.Tables, func(t StateTable) bool { return t.Name == table.Name })
		if j < 0 {
			return fmt.Sprintf("its state table %s is gone", table.Name)
		}
		if text := compareFields("key", table.Key, is.Tables[j].Key); text != "" {
			return text
		}
		if text := compareFields("state", table.Value, is.Tables[j].Value); text != "" {
			return text
		}
	}
	if len(is.Tables)-len(is.Variables) > len(was.Tables)-len(was.Variables) {
		return "its state has a new table"
	}
	return ""
}

// compareVariables says how a state variable changed, "" if none did. A new one begins
// empty.
func compareVariables(was, is []Variable) string {
	for _, w := range was {
		i := slices.IndexFunc(is, func(v Variable) bool { return v.Name == w.Name })
		switch {
		case i < 0:
			return fmt.Sprintf("its state variable %s (%s) is gone; keep declaring it", w.Name, w)
		case w != is[i]:
			return fmt.Sprintf("its state variable %s was %s and is now %s", w.Name, w, is[i])
		}
	}
	return ""
}

// compareFields compares columns by position: names may differ, types may not, and
// what may hold nulls must stay so.
func compareFields(what string, was, is []Field) string {
	if len(was) != len(is) {
		return fmt.Sprintf("its %s columns were (%s) and are now (%s)", what, fieldList(was), fieldList(is))
	}
	for i, w := range was {
		switch {
		case w.Type != is[i].Type:
			return fmt.Sprintf("%s column %s was %s and is now %s", what, w.Name, w.Type, is[i].Type)
		case w.Nullable && !is[i].Nullable:
			return fmt.Sprintf("%s column %s could be null and no longer can", what, w.Name)
		}
	}
	return ""
}

func fieldList(fields []Field) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = f.Name + " " + f.Type
	}
	return strings.Join(parts, ", ")
}

func compareSource(was Source, all []Source) string {
	i := slices.IndexFunc(all, func(s Source) bool { return s.Name == was.Name })
	if i < 0 {
		return "it is gone from the query"
	}
	is := all[i]
	switch {
	case was.Kind != is.Kind:
		return fmt.Sprintf("it was %s and is now %s", was.Kind, is.Kind)
	case was.Identity != is.Identity:
		return fmt.Sprintf("it was %q and is now %q", was.Identity, is.Identity)
	}
	return ""
}

// CheckPlan compares the query's plan with plan.json and gives ErrIncompatible,
// naming every operator, source and setting that was refused. In a checkpoint
// without batches it writes plan.json. If plan.json is lost or damaged it is
// written again, provided the newest entry of the log has the fingerprint of now.
//
// The pinned schemas of sources are not compared: they are read with Plan before
// the query is planned. On a checkpoint that has them, now may come with more
// (widened columns), which are written.
func (d *Dir) CheckPlan(now Plan) error {
	was, err := d.Plan()
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt):
		return d.rescuePlan(now, err)
	case err != nil:
		return err
	}
	refused := was.Check(d.path, now)
	if refused == nil {
		if samePlan(was, now) {
			return nil
		}
		return d.writePlan(now)
	}
	if empty, err := d.noBatches(); err != nil || empty {
		return errors.Join(err, d.writePlan(now))
	}
	return refused
}

// Check is the *IncompatibleError that names all that Compare refuses, nil if that is
// nothing; dir is the checkpoint of p.
func (p Plan) Check(dir string, now Plan) error {
	var refused []string
	changed := false
	for _, f := range p.Compare(now) {
		if f.Verdict == Refused {
			refused = append(refused, f.Text)
			changed = changed || !strings.HasSuffix(f.Text, keptLess)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return &IncompatibleError{Path: dir, Batch: NoBatch, Reasons: refused, Query: changed}
}

// Notes are the changes that Compare lets pass and the user is to know of, a line each.
func (p Plan) Notes(now Plan) []string {
	var notes []string
	for _, f := range p.Compare(now) {
		if f.Verdict == Kept && f.Text != "" {
			notes = append(notes, f.Text)
		}
	}
	return notes
}

func samePlan(a, b Plan) bool {
	return HashBytes(seal(a, planChecksum)) == HashBytes(seal(b, planChecksum))
}

// rescuePlan writes plan.json for a checkpoint that has none that can be read.
func (d *Dir) rescuePlan(now Plan, cause error) error {
	empty, err := d.noBatches()
	if err != nil {
		return err
	}
	if empty {
		return d.writePlan(now)
	}
	logged := ""
	if n, e, err := d.offsets.Latest(); err == nil && n != NoBatch {
		logged = e.Plan
	} else if n, c, err := d.commits.Latest(); err == nil && n != NoBatch {
		logged = c.Offsets.Plan
	}
	switch {
	case logged == now.Fingerprint() || logged == now.withoutReads().Fingerprint():
		return d.writePlan(now)
	case errors.Is(cause, fs.ErrNotExist):
		return corrupt(d.file(planName), NoBatch, "the file is missing, and the query is not the one of the newest batch", nil)
	}
	return cause
}

// noBatches reports whether no batch was ever planned here.
func (d *Dir) noBatches() (bool, error) {
	offsets, err := d.offsets.IDs()
	if err != nil {
		return false, err
	}
	commits, err := d.commits.IDs()
	if err != nil {
		return false, err
	}
	last, err := d.history.Last()
	return len(offsets) == 0 && len(commits) == 0 && last == NoBatch, err
}

// Plan reads plan.json: fs.ErrNotExist if there is none yet, ErrCorrupt if it is
// damaged.
func (d *Dir) Plan() (Plan, error) { return readPlan(d.fs, d.file(planName)) }

// ReadPlan reads plan.json of the checkpoint in dir without its lock: fs.ErrNotExist
// if there is none, ErrCorrupt if it is damaged.
func ReadPlan(fsys vfs.FS, dir string) (Plan, error) {
	return readPlan(fsys, path.Join(dir, planName))
}

func planChecksum(p *Plan) *string { return &p.Checksum }

func readPlan(fsys vfs.FS, name string) (Plan, error) {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return Plan{}, err
	}
	return unseal(name, data, planChecksum)
}

func (d *Dir) writePlan(p Plan) error {
	return vfs.WriteAtomic(d.fs, d.file(planName), seal(p, planChecksum))
}
