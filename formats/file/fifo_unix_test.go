//go:build unix

package file

import "syscall"

func mkfifo(name string) error { return syscall.Mkfifo(name, 0o666) }
