// Package vfs is the filesystem the engine writes to. It is not part of the
// public API.
//
// It is small on purpose: whatever is not in FS cannot be done to disk. Every
// durable action of Tidemill goes through it, so that a test can record each
// one (Trace), make any one of them fail or crash (package faultfs), and look
// at what a power cut would have left (Mem.Crash). On an Overlay everything can be done
// without changing what is below it.
//
// # What a crash may leave
//
// The rules below are what callers may rely on, whatever the filesystem:
//
//  1. The bytes of a file are durable once File.Sync has returned nil. Bytes
//     written after that may vanish, be zero or be cut anywhere.
//  2. A directory entry (a name made by Create, MkdirAll or Rename, or taken
//     away by Remove or Rename) is durable once a File from OpenDir of its
//     directory has been synced. Until then each change may or may not have
//     happened, independently of changes to other names and of the data in
//     the file; changes to the same name happen in order.
//  3. Rename is atomic: after a crash the file is found under the old name or
//     under the new one, and a replaced file is whole or gone. A rename into
//     another directory is durable once the new directory is synced.
//  4. Sync that returned an error is final: what was written since the last
//     good Sync must be taken for lost, and the file be written anew. Calling
//     Sync again proves nothing.
//  5. A lock is gone when its process is.
//
// WriteAtomic is the usual way to obey them: a temporary file in the same
// directory, sync, rename, sync of the directory. MkdirAll (the function, not
// the method) makes directories durably.
//
// # Names
//
// Names are paths of the operating system with slashes, absolute or relative
// to the working directory. Mem takes relative names from its root. Temporary
// files begin with "." and end with ".tmp" (see IsTemp), whatever their use,
// so that every directory can be tidied by one rule.
package vfs
