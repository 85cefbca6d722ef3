package function

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// search is a regular expression and what makes finding its first match quick. The
// standard library notes every place and state it was in, so that no expression takes
// more than linear time; most expressions never come to one twice. search tries without
// notes first, only where a match can begin, and asks the library once that took more
// steps than it should. It finds exactly what the library finds.
type search struct {
	std    *regexp.Regexp
	prog   []syntax.Inst
	ascii  [][2]uint64 // per instruction that reads a character: the ASCII ones it takes
	start  uint32
	begins bool // a match begins where the text does
	groups int
	// Every match has needle in it, from before to after bytes behind its beginning;
	// after is -1 if there is no bound. An empty needle says nothing.
	needle        []byte
	before, after int
}

func newSearch(re *regexp.Regexp) *search {
	s := &search{std: re, groups: 2 * (re.NumSubexp() + 1)}
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return s // only std
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil {
		return s
	}
	s.prog, s.start = prog.Inst, uint32(prog.Start)
	s.begins = prog.StartCond()&syntax.EmptyBeginText != 0
	s.ascii = make([][2]uint64, len(s.prog))
	for i := range s.prog {
		switch s.prog[i].Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			for c := range rune(utf8.RuneSelf) {
				if s.prog[i].MatchRune(c) {
					s.ascii[i][c>>6] |= 1 << (c & 63)
				}
			}
		}
	}
	s.findNeedle(tree)
	return s
}

// findNeedle picks the longest literal of those that stand in a row in every match, one
// with a bound before one without.
func (s *search) findNeedle(tree *syntax.Regexp) {
	least, most := 0, 0
	for _, part := range inRow(tree, nil) {
		if text := literalOf(part); len(text) > 0 {
			bounded, was := most >= 0, s.after >= 0
			if s.needle == nil || bounded && !was || bounded == was && len(text) > len(s.needle) {
				s.needle, s.before, s.after = text, least, most
			}
		}
		a, b := widthOf(part)
		least += a
		if most >= 0 && b >= 0 {
			most += b
		} else {
			most = -1
		}
	}
}

// inRow appends the parts of tree that follow each other in every match.
func inRow(tree *syntax.Regexp, parts []*syntax.Regexp) []*syntax.Regexp {
	switch tree.Op {
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range tree.Sub {
			parts = inRow(sub, parts)
		}
		return parts
	}
	return append(parts, tree)
}

// literalOf is the bytes a part stands for, if it stands for nothing else. The
// replacement character also stands for a damaged byte.
func literalOf(part *syntax.Regexp) []byte {
	if part.Op != syntax.OpLiteral || part.Flags&syntax.FoldCase != 0 {
		return nil
	}
	var text []byte
	for _, r := range part.Rune {
		if r == utf8.RuneError {
			return nil
		}
		text = utf8.AppendRune(text, r)
	}
	return text
}

// widthOf is the least and the most bytes that a part matches, -1 without a bound.
func widthOf(part *syntax.Regexp) (least, most int) {
	if text := literalOf(part); text != nil {
		return len(text), len(text)
	}
	switch part.Op {
	case syntax.OpLiteral:
		return len(part.Rune), utf8.UTFMax * len(part.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, utf8.UTFMax
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return 0, 0
	case syntax.OpQuest:
		_, most = widthOf(part.Sub[0])
		return 0, most
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range part.Sub {
			a, b := widthOf(sub)
			least += a
			if most >= 0 && b >= 0 {
				most += b
			} else {
				most = -1
			}
		}
		return least, most
	case syntax.OpAlternate:
		least, most = widthOf(part.Sub[0])
		for _, sub := range part.Sub[1:] {
			a, b := widthOf(sub)
			least = min(least, a)
			if most >= 0 && b >= 0 {
				most = max(most, b)
			} else {
				most = -1
			}
		}
		return least, most
	}
	return 0, -1
}

// searcher runs a search; one goroutine uses it.
type searcher struct {
	*search
	text  []byte
	at    []int // where groups begin and end, -1 where they are not
	steps int   // left
}

func (s *search) searcher() *searcher { return &searcher{search: s, at: make([]int, s.groups)} }

// find is what FindSubmatchIndex of the expression gives; it is overwritten by the next
// call.
func (s *searcher) find(text []byte) []int {
	if len(s.needle) > 0 && !bytes.Contains(text, s.needle) {
		return nil
	}
	if s.prog == nil {
		return s.std.FindSubmatchIndex(text)
	}
	s.text, s.steps = text, 256+16*len(text)
	found := s.from()
	s.text = nil
	if s.steps < 0 {
		return s.std.FindSubmatchIndex(text)
	}
	if !found {
		return nil
	}
	return s.at
}

// from tries the places where a match can begin, one after the other.
func (s *searcher) from() bool {
	for i := s.first(0); i >= 0; i = s.first(i) {
		for g := range s.at {
			s.at[g] = -1
		}
		if s.run(s.start, i, 0) {
			s.at[0] = i
			return true
		}
		if s.steps < 0 || s.begins || i == len(s.text) {
			return false
		}
		_, width := utf8.DecodeRune(s.text[i:])
		i += width
	}
	return false
}

// first is the first place from i on where a match can begin for the needle's sake, -1 if
// there is none.
func (s *searcher) first(i int) int {
	if len(s.needle) == 0 {
		return i
	}
	if i+s.before > len(s.text) {
		return -1
	}
	k := bytes.Index(s.text[i+s.before:], s.needle)
	if k < 0 {
		return -1
	}
	if s.after < 0 || s.begins {
		return i
	}
	// Not in the middle of a character, where the library begins no match.
	to := max(i, i+s.before+k-s.after)
	for to > i && !utf8.RuneStart(s.text[to]) {
		to--
	}
	return to
}

// deepest is how many choices run may have open at a time.
const deepest = 1000

// run follows the program from pc at text[i:]; at[1] is where the match ends.
func (s *searcher) run(pc uint32, i, depth int) bool {
	if depth == deepest {
		s.steps = -1
	}
	for {
		if s.steps--; s.steps < 0 {
			return false
		}
		inst := &s.prog[pc]
		switch inst.Op {
		case syntax.InstMatch:
			s.at[1] = i
			return true
		case syntax.InstFail:
			return false
		case syntax.InstNop:
			pc = inst.Out
		case syntax.InstCapture:
			was := s.at[inst.Arg]
			s.at[inst.Arg] = i
			if s.run(inst.Out, i, depth+1) {
				return true
			}
			s.at[inst.Arg] = was
			return false
		case syntax.InstEmptyWidth:
			if !s.empty(syntax.EmptyOp(inst.Arg), i) {
				return false
			}
			pc = inst.Out
		case syntax.InstAlt, syntax.InstAltMatch:
			if s.isLoop(pc, inst.Out) {
				return s.loop(inst.Out, inst.Arg, i, depth)
			}
			if s.run(inst.Out, i, depth+1) {
				return true
			}
			pc = inst.Arg
		default:
			width := s.step(pc, i)
			if width == 0 {
				return false
			}
			i += width
			pc = inst.Out
		}
	}
}

// isLoop says whether body reads one character and comes back to pc: x* and x+.
func (s *searcher) isLoop(pc, body uint32) bool {
	switch b := &s.prog[body]; b.Op {
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		return b.Out == pc
	}
	return false
}

// loop reads as many characters as it can, and goes on behind the last of them for which
// that leads to a match.
func (s *searcher) loop(body, out uint32, from, depth int) bool {
	i := from
	for width := s.step(body, i); width > 0; width = s.step(body, i) {
		i += width
		s.steps--
	}
	for {
		if s.run(out, i, depth+1) {
			return true
		}
		if i == from || s.steps < 0 {
			return false
		}
		_, width := utf8.DecodeLastRune(s.text[from:i])
		i -= width
	}
}

// step is the width of the character at text[i:] if the instruction takes it, else 0.
func (s *searcher) step(pc uint32, i int) int {
	if i >= len(s.text) {
		return 0
	}
	if c := s.text[i]; c < utf8.RuneSelf {
		return int(s.ascii[pc][c>>6] >> (c & 63) & 1)
	}
	r, width := utf8.DecodeRune(s.text[i:])
	if s.prog[pc].MatchRune(r) {
		return width
	}
	return 0
}

// empty says whether conditions on the place between two characters hold.
func (s *searcher) empty(want syntax.EmptyOp, i int) bool {
	before, after := rune(-1), rune(-1)
	if i > 0 {
		before, _ = utf8.DecodeLastRune(s.text[:i])
	}
	if i < len(s.text) {
		after, _ = utf8.DecodeRune(s.text[i:])
	}
	return want&^syntax.EmptyOpContext(before, after) == 0
}
