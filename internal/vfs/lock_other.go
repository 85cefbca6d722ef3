//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package vfs

import (
	"errors"
	"os"
)

// lockFile refuses: running without a lock could double rows.
func lockFile(*os.File) error {
	return errors.ErrUnsupported
}
