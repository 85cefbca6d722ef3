// Package faultfs makes the calls of a filesystem fail by rule: an error, a
// short write, or a crash at the n-th matching call. It is not part of the
// public API.
//
// Rules have a text form, which Parse reads and Rule.String prints, so that a
// failing fault of a generated test can be pasted into a golden file:
//
//	(crash (and rename (path "commits/2")))
//	(error ENOSPC (from 12 write))
//	(short (nth 3 mutating))
//
// A rule is an action and a predicate. The actions:
//
//	(crash P)       at the first call for which P holds, and for every call after it, ErrCrashed
//	(error E P)     the call is not made; E is one of the names in Errors, such as EIO or ENOSPC
//	(short P)       a write writes half of its bytes and gives ENOSPC; any other call is (error EIO P)
//
// The predicates:
//
//	any reading mutating            every call; those that cannot, and can, change the disk
//	open create opendir rename remove mkdir readdir stat lock read write sync close
//	(path "commits/2")              the name is this, or ends with it after a slash; * ? [] are
//	                                patterns within an element; a rename is matched by both names
//	(and P P…) (or P P…) (not P)
//	(nth N P)                       the call for which P holds after it held for N others
//	(from N P)                      that call and all later ones for which P holds
//
// Every part of a rule sees every call, in the order of the text, so the counts
// of nth and from do not depend on the parts before them.
package faultfs
