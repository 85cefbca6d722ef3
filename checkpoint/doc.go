// Package checkpoint keeps what a streaming query must remember to survive being
// killed at any instruction: what each batch was to read (offsets), what it left
// behind (commits), what its sources have read, and which files hold its state.
// FORMAT.md describes every file and field.
//
// It is used by incremental, which runs the protocol below, and by the CLI, which
// looks at checkpoints with Inspect and Verify. It does not encode state: that is
// incremental/state; here state files have names, sizes and hashes.
//
// # Layout
//
//	metadata      query id, format and engine version (Metadata)
//	plan.json     stateful operators, sources, pinned settings (Plan)
//	lock          held by the query that runs
//	offsets/N     what batch N reads, with its clock and watermarks (OffsetEntry)
//	prepared/N    what batch N left, before it is visible (CommitEntry)
//	commits/N     the same, after it is visible
//	history/A-B   offsets and commits of old batches, packed (History)
//	sources/I/…   the durable memory of source I (SourceLog)
//	state/OP/…    change and snapshot files of an operator (StateFile)
//	last_error    the error that ended the last run, for status
//
// # The commit protocol
//
// One batch N is this list, in this order. Each step is durable before the next
// one starts.
//
//  1. The entries of sources/I, then offsets/N: the intent. (Log.Add)
//  2. The batch runs, and the sink stages its rows.
//  3. State files of version N+1, then prepared/N, which names them. (Dir.WriteState, Dir.Prepare)
//  4. The sink publishes: the batch is visible. The sink knows.
//  5. prepared/N is renamed to commits/N. (Dir.Commit)
//  6. Old entries are folded into history, unreachable state files removed. (Dir.Maintain)
//
// What is not believed yet needs no order: the files of step 2, those of step 3 and the
// draft of the sink's decision are written and synced at the same time, and all are durable
// before prepared/N is written, the draft has its name only in step 4. The entries of
// sources/I for batch N+1 may be written as soon as batch N has passed step 2, until when
// they are held in memory (SourceLog.Hold), and its rows may be worked out in memory; offsets/N+1 follows commits/N.
//
// A visible batch is never run again for its output, and running an invisible one
// again is harmless. So after a crash:
//
//	the crash came      what is there                      Recover says
//	before 1            nothing of N                       Plan N (source entries that no offset names are adopted)
//	in 2 or 3           offsets/N, sink at N-1             Run N with the logged values
//	between 4 and 5     prepared/N, sink at N              RollForward N: check its state files, rename
//	after 5             commits/N                          Plan N+1
//
// Damage is repaired where the right content can be derived (Recover has the
// rules); where it cannot, the error is ErrCorrupt and names the file, and nothing
// was changed.
//
// # Invariants
//
//   - Every file is written by vfs.WriteAtomic and never changed. The entry of a
//     batch that is not visible may be withdrawn, that of prepared be replaced.
//   - offsets/N exists only if commits/N-1 does.
//   - Every file of a log carries a checksum over all its bytes; state files are
//     checked against size and hash in the commit that names them.
//   - A commit holds a copy of its offsets entry: either can be told from the other.
//   - Files that a retained commit reaches are not removed; what replaces a file is
//     durable before it is removed.
package checkpoint
