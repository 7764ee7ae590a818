# Reads C files. "fail:" lines break the build, "note:" lines only tell. Variables: none.

function start_file() {
	in_comment = documented = in_function = continued = 0
	header = FILENAME ~ /\.h$/
	lines = 0
}

function end_file() {
	if (lines > 600)
		print "note: " last_file ": " lines " lines (600)"
}

# The line without comments, and with nothing between quotes.
function code_of(line,    out, at) {
	if (!in_comment) {
		gsub(/'(\\.|[^'\\])'/, "0", line)
		gsub(/"(\\.|[^"\\])*"/, "\"\"", line)
	}
	out = ""
	while (line != "") {
		if (in_comment) {
			at = index(line, "*/")
			if (at == 0)
				return out
			line = substr(line, at + 2)
			in_comment = 0
			documented = 1
			# The rest was behind the comment's end: its quotes are code again.
			gsub(/"(\\.|[^"\\])*"/, "\"\"", line)
		} else {
			at = index(line, "/*")
			if (at == 0)
				return out line
			out = out substr(line, 1, at - 1)
			line = substr(line, at + 2)
			in_comment = 1
		}
	}
	return out
}

FNR == 1 {
	if (NR > 1)
		end_file()
	start_file()
}

{
	lines = FNR
	last_file = FILENAME
	if ($0 ~ /^[ \t]*$/ && !in_comment)
		documented = 0
	code = code_of($0)
	where = FILENAME ":" FNR
}

code ~ /(^|[^A-Za-z0-9_.>])(strcpy|strcat|sprintf|vsprintf|strtok|strncpy|gets|atoi|atof|system|popen|sleep|usleep|localtime|rand)[ \t]*\(/ {
	print "fail: " where ": banned call: " $0
}

code ~ /\/\// {
	print "note: " where ": // comment"
}

# A prototype, and what follows it without a blank line, is documented by the comment above.
header && code ~ /^[a-z][A-Za-z0-9_ *]*[ *](ls|lockstep)_[a-z0-9_]+\(/ && !documented {
	print "fail: " where ": prototype without a comment: " $0
}

code ~ /^\{/ {
	in_function = 1
	first = FNR
}

in_function && code ~ /^\}/ {
	if (FNR - first + 1 > 98)
		print "note: " where ": function of " FNR - first + 1 " lines (98)"
	in_function = 0
}

END {
	if (NR > 0)
		end_file()
}
