package remoting

import "strconv"

// Language is the language of the program that wrote a command: a number in
// the binary header, a name in the JSON one.
type Language uint8

// The languages RocketMQ knows.
const (
	Java Language = iota
	CPP
	DotNet
	Python
	Delphi
	Erlang
	Ruby
	Other
	HTTP
	Go
	PHP
	OMS
	Rust
	NodeJS
)

var languageNames = [...]string{
	Java: "JAVA", CPP: "CPP", DotNet: "DOTNET", Python: "PYTHON", Delphi: "DELPHI",
	Erlang: "ERLANG", Ruby: "RUBY", Other: "OTHER", HTTP: "HTTP", Go: "GO",
	PHP: "PHP", OMS: "OMS", Rust: "RUST", NodeJS: "NODE_JS",
}

// String returns the name on the wire.
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return "Language(" + strconv.Itoa(int(l)) + ")"
}

// languageByName returns Other for names RocketMQ does not know.
func languageByName(name string) Language {
	switch name { // the two that matter, without the walk
	case "JAVA":
		return Java
	case "GO":
		return Go
	}
	for i, n := range languageNames {
		if n == name {
			return Language(i)
		}
	}
	return Other
}
