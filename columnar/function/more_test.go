package function_test

import "testing"

// TestMore pins the rules of functions known from other engines: what their examples do
// not show.
func TestMore(t *testing.T) {
	cases{
		{"bround(2.5)", "2"}, {"bround(3.5)", "4"}, {"bround(-2.5)", "-2"}, {"bround(2.51)", "3"}, {"bround(2.5e0)", "2"}, {"bround(0.125e0, 2)", "0.12"}, {"bround(0.375, 2)", "0.380"}, {"bround(0.365, 2)", "0.360"},
		{"bround(25, -1)", "20"}, {"bround(35, -1)", "40"}, {"bround(NULL)", "NULL"}, {"bround(1234.5678, -2)", "1200.0000"},
		{"pmod(-7.5, 2)", "0.5"}, {"pmod(7.5, -2)", "1.5"}, {"pmod(-7.5, -2)", "-1.5"}, {"pmod(-7, 2.25)", "2.00"}, {"pmod(-7.5, 1000000000)", "999999992.5"}, {"pmod(-7.5e0, 2)", "0.5"}, {"pmod(-1e-20, 2e0)", "0"}, {"pmod(NULL, 2.5)", "NULL"},
		{"pmod(1.5, 0)", "error: division by zero"}, {"pmod(1e0, 0e0)", "error: division by zero"}, {"pmod(CAST(1 AS DECIMAL(38,10)), CAST(1 AS DECIMAL(38,0)))", "error: more than 38 digits"},
		{"nullifzero(-0e0)", "NULL"}, {"nullifzero(0.00)", "NULL"}, {"nullifzero(5)", "5"}, {"zeroifnull(CAST(NULL AS DECIMAL(5,2)))", "0.00"}, {"zeroifnull(3)", "3"},
		{"hex(encode('€', 'UTF-16'))", "FEFF20AC"}, {"hex(encode('😀', 'utf-16le'))", "3DD800DE"}, {"encode('é', 'US-ASCII')", "error: 'é' is not in US-ASCII"}, {"encode('a', 'EBCDIC')", "error: is unknown; there are US-ASCII"},
		{"decode(unhex('3DD800DE'), 'UTF-16LE')", "😀"}, {"decode(unhex('FFFE3DD800DE'), 'UTF-16')", "😀"}, {"decode(unhex('FF'))", "error: no UTF-8"}, {"decode(unhex('D83D'), 'UTF-16BE')", "error: from 1 on are no UTF-16"}, {"decode(unhex('FF'), 'UTF-16')", "error: 1 bytes are no UTF-16"},
		{"validate_utf8(unhex('FF'))", "error: no UTF-8"}, {"try_validate_utf8(unhex('61'))", "a"},
		{"raise_error('no such case')", "error: no such case"}, {"assert_true(1 > 2)", "error: the condition is not true"}, {"assert_true(1 > 2, 'too small')", "error: too small"}, {"assert_true(CAST(NULL AS BOOLEAN))", "error: not true"},
		{"make_ym_interval(178956971)", "error: overflows INTERVAL"}, {"make_ym_interval(-1, 11)", "-1 month"}, {"make_dt_interval(1)", "1 day"}, {"make_dt_interval(0, 0, 0, -0.000001)", "-00:00:00.000001"}, {"make_dt_interval(2147483648)", "error: overflow INTERVAL"}, {"make_dt_interval(0, 9223372036854775807)", "error: overflow INTERVAL"},
		{"convert_timezone('America/New_York', TIMESTAMP '2024-07-01 12:00:00')", "2024-07-01 08:00:00"}, {"convert_timezone('Mars', TIMESTAMP '2024-07-01 12:00:00')", "error: time zone \"Mars\" is unknown"},
		{"shiftrightunsigned(-1, 64)", "0"}, {"shiftrightunsigned(1, -1)", "error: cannot be negative"}, {"regexp_substr('abc', '[0-9]')", "NULL"}, {"regexp_substr('abc', '[0-9')", "error: "},
		{"parse_filename('a.tar.gz', true)", "a.tar"}, {"parse_filename('dir/.hidden', true)", ".hidden"}, {"parse_dirpath('a')", `""`}, {"parse_dirname('/a/b')", `""`},
	}.run(t, "")
}

func TestMoreOfArrays(t *testing.T) {
	cases{
		{"array_insert(array(1, 2), 4, 9)", "[1,2,null,9]"}, {"array_insert(array(1, 2), -1, 9)", "[1,2,9]"}, {"array_insert(array(1, 2), -2, 9)", "[1,9,2]"}, {"array_insert(array(1, 2), -3, 9)", "[9,1,2]"},
		{"array_insert(array(1, 2), -5, 9)", "[9,null,null,1,2]"}, {"array_insert(array(1), 0, 9)", "error: no element 0"}, {"array_insert(array(1), 2, NULL)", "[1,null]"}, {"array_insert(array(1), 1, 2.5)", "[2.5,1.0]"}, {"array_insert(array(1), 9223372036854775807, 2)", "error: the limit is"},
		{"arrays_zip(array(1), NULL)", "NULL"}, {"arrays_zip(array(1, 2))", `[{"0":1},{"0":2}]`}, {"arrays_zip(array(), array(1))", `[{"0":null,"1":1}]`},
		{"str_to_map('a=1&b=2=3&c', '&', '=')", `{"a":"1","b":"2=3","c":null}`}, {"str_to_map('')", `{"":null}`}, {"str_to_map('a:1,a:2')", "error: is there twice"}, {"str_to_map(NULL)", "NULL"}, {"str_to_map('a1b2', '[0-9]')", `{"a":null,"b":null,"":null}`},
		{"list_inner_product(array(1, 2), array(1))", "error: arrays of 2 and 1 numbers"}, {"list_distance(array(1, NULL), array(1, 2))", "NULL"}, {"list_cosine_similarity(array(0, 0), array(1, 2))", "NaN"},
		{"list_median(array())", "NULL"}, {"list_median(array(1, 2, 6))", "2"}, {"list_count(array(NULL, NULL))", "0"}, {"list_histogram(array(1, 1))", `{"1":2}`}, {"list_median(NULL)", "NULL"}, {"list_product(array('a'))", "error: cannot cast"},
		{"list_unique(array())", "0"}, {"list_unique(array(0e0, -0e0, NULL))", "1"},
		{"hash(1)", "-559580957"}, {"hash(NULL)", "42"}, {"hash(0e0) = hash(-0e0)", "true"}, {"hash('abc') = hash('abd')", "false"}, {"hash(map('a', 1))", "error: does not exist"},
	}.run(t, "")
}

func TestFormats(t *testing.T) {
	cases{
		{"format('{} {} {}', 1, 'a', NULL)", "NULL"}, {"format('{1} {0}', 'a', 'b')", "b a"}, {"format('{{}}')", `"{}"`}, {"format('{:>5}|{:<5}|{:^5}', 'a', 'b', 'c')", "\"    a|b    |  c  \""}, {"format('{:*^5}', 'é')", "**é**"},
		{"format('{:5}|{:5}', 1, 'a')", "\"    1|a    \""}, {"format('{:05d}', -42)", "-0042"}, {"format('{:+}', 42)", "+42"}, {"format('{:,}', 1234567)", "1,234,567"}, {"format('{:,.2f}', -1234567.891)", "-1,234,567.89"},
		{"format('{:x} {:#X} {:b} {:o}', 255, 255, 5, 8)", "ff 0XFF 101 10"}, {"format('{:.2f}', 99999999999999999999999999999999999999)", "99999999999999999999999999999999999999.00"}, {"format('{:.1e}', 12345)", "1.2e+04"}, {"format('{:.2}', 'abc')", "ab"}, {"format('{}', 1.50)", "1.50"}, {"format('{}', true)", "true"},
		{"format('{:f}', CAST('NaN' AS DOUBLE))", "nan"}, {"format('{} {}', 1)", "error: no value for {1}; there are 1"}, {"format('{', 1)", "error: a brace stands alone"}, {"format('}', 1)", "error: a brace stands alone"}, {"format('{:q}', 1)", "error: {:q} is unknown"}, {"format('{:d}', 'a')", "error: takes a number, not VARCHAR"}, {"format('{:d}', 1.5)", "error: takes an integer"}, {"format('{:99999999}', 1)", "error: is unknown"},
		{"to_char(454, '999')", "454"}, {"to_char(454.00, '000D00')", "454.00"}, {"to_char(12454, '99G999')", "12,454"}, {"to_char(78.12, '$99.99')", "$78.12"}, {"to_char(-12454.8, '99G999D9S')", "12,454.8-"}, {"to_char(-12454.8, 'S99,999.9')", "-12,454.8"}, {"to_char(12, 'S99')", "+12"}, {"to_char(-12, '99PR')", "<12>"}, {"to_char(-12, '99MI')", "12-"},
		{"to_char(7, '999')", "\"  7\""}, {"to_char(7, '009')", "007"}, {"to_char(1234, '999')", "###"}, {"to_char(1.25, '9.9')", "1.3"}, {"to_char(0, '9')", "0"}, {"to_char(0.5, '9.9')", "0.5"}, {"to_char(0.5, '.9')", ".5"}, {"to_char(1234.567, '999,999.9')", "\"  1,234.6\""}, {"to_char(1234567.891, '999,999.9')", "###,###.#"}, {"to_char(9.96, '9.9')", "#.#"}, {"to_char(9.96, '99.9')", "10.0"}, {"to_char(-0.04, '9.9')", "0.0"},
		{"to_char(1234.565e0, '9,999.99')", "1,234.57"}, {"to_char(CAST('NaN' AS DOUBLE), '99')", "##"}, {"to_char(1e300, '99')", "##"}, {"to_char(-1.5e0, 'S9')", "-2"}, {"to_char(0.5, '0.9')", "0.5"}, {"to_char(1, '9x')", "error: number format"}, {"to_char(1, '')", "error: number format"},
		{"to_char(TIMESTAMP '2024-05-06 07:08:09', 'yyyy-MM-dd')", "2024-05-06"},
		{"strftime(TIMESTAMP '2024-02-29 10:11:12', '%U %W %V %G %u %w')", "08 09 09 2024 4 4"}, {"strftime(TIMESTAMP '2021-01-03 00:00:00', '%U %W %V %G %u %w')", "01 00 53 2020 7 0"}, {"strftime(TIMESTAMP '2018-12-31 00:00:00', '%U %W %-V %G')", "52 53 1 2019"}, {"strftime(TIMESTAMP '2023-01-01 00:00:00', '%U %W %V %G')", "01 00 52 2022"},
		{"strftime(TIMESTAMP '2024-02-29 10:11:12', '%c|')", "2024-02-29 10:11:12|"}, {"strptime('2024-02-29 10:11:12', '%c')", "2024-02-29 10:11:12"}, {"strptime('2024-05', '%Y-%V')", "error: is not read by the number of a week, %V"},
	}.run(t, "")
}
