for p in fail ignore add rescue; do echo "== $p"; for f in j:json c:csv p:parquet; do
./tidemill query --format jsonl "SELECT * FROM read_${f#*:}('r/${f%:*}', schema_evolution => '$p', header=>true)" 2>&1 | head -20; ./tidemill query --format jsonl "SELECT * FROM read_${f#*:}('r/${f%:*}', schema_evolution => '$p')" 2>&1 | head; done; done
