#include "client_cli/flags/flags.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace optfarm::client_cli {
namespace {

using Kind = FlagDeclaration::Kind;

constexpr size_t kLineWidth = 80;
constexpr size_t kHelpColumn = 30;

absl::Status Invalid(const std::string& value, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", value, "' is not ", wanted));
}

// Days and weeks have a single number before them: "7d", "1.5w".
bool ParseDays(absl::string_view text, absl::Duration* value) {
  absl::Duration unit;
  if (absl::ConsumeSuffix(&text, "d")) {
    unit = absl::Hours(24);
  } else if (absl::ConsumeSuffix(&text, "w")) {
    unit = absl::Hours(24 * 7);
  } else {
    return false;
  }
  double number = 0;
  if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) return false;
  *value = number * unit;
  return true;
}

absl::Status StoreDuration(const std::string& text, absl::Duration* value) {
  double seconds = 0;
  absl::Duration parsed;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds)) {
    parsed = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &parsed) && !ParseDays(text, &parsed)) {
    return Invalid(text, "a duration like 30s, 5m, 2h or 7d");
  }
  if (parsed <= absl::ZeroDuration()) {
    return Invalid(text, "a duration above zero");
  }
  *value = parsed;
  return absl::OkStatus();
}

absl::Status StoreIntegers(const std::string& text,
                           std::vector<int32_t>* values) {
  std::vector<int32_t> parsed;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    int32_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 1) {
      return Invalid(text, "a list of whole numbers from 1 up, like 1,4");
    }
    if (!absl::c_linear_search(parsed, number)) parsed.push_back(number);
  }
  *values = std::move(parsed);
  return absl::OkStatus();
}

std::string FlagHead(const FlagDeclaration& flag) {
  if (flag.kind == Kind::kArgument) {
    return absl::StrCat(flag.name, flag.several ? "..." : "");
  }
  return absl::StrCat(
      flag.letter.empty() ? "" : absl::StrCat("-", flag.letter, ", "), "--",
      flag.name,
      flag.kind == Kind::kSwitch ? "" : absl::StrCat("=", flag.placeholder));
}

}  // namespace

FlagDeclaration& FlagSet::Add(absl::string_view name,
                              absl::string_view placeholder,
                              absl::string_view help, Kind kind) {
  FlagDeclaration& flag = declarations_.emplace_back();
  flag.name = std::string(name);
  flag.placeholder = std::string(placeholder);
  flag.help = std::string(help);
  flag.kind = kind;
  return flag;
}

void FlagSet::Switch(absl::string_view name, absl::string_view help,
                     bool* value) {
  Add(name, "", help, Kind::kSwitch).store = [value](const std::string& text) {
    const bool is_on = text == "true" || text == "yes";
    if (!is_on && text != "false" && text != "no") {
      return Invalid(text, "true or false");
    }
    *value = is_on;
    return absl::OkStatus();
  };
}

void FlagSet::Text(absl::string_view name, absl::string_view placeholder,
                   absl::string_view help, std::string* value) {
  Add(name, placeholder, help, Kind::kSingle).store =
      [value](const std::string& text) {
        *value = text;
        return absl::OkStatus();
      };
}

void FlagSet::Path(absl::string_view name, absl::string_view placeholder,
                   absl::string_view help, std::string* value) {
  Text(name, placeholder, help, value);
  declarations_.back().is_path = true;
  declarations_.back().store = [value](const std::string& text) {
    *value = ExpandHome(text);
    return absl::OkStatus();
  };
}

void FlagSet::Texts(absl::string_view name, absl::string_view placeholder,
                    absl::string_view help, std::vector<std::string>* values) {
  Add(name, placeholder, help, Kind::kRepeatable).store =
      [values](const std::string& text) {
        values->push_back(text);
        return absl::OkStatus();
      };
}

void FlagSet::Integer(absl::string_view name, absl::string_view help,
                      int64_t* value, int64_t least, int64_t most) {
  Add(name, "N", help, Kind::kSingle).store = [value, least,
                                               most](const std::string& text) {
    int64_t parsed = 0;
    if (!absl::SimpleAtoi(text, &parsed) || parsed < least || parsed > most) {
      return Invalid(text,
                     absl::StrCat("a whole number from ", least, " to ", most));
    }
    *value = parsed;
    return absl::OkStatus();
  };
}

void FlagSet::Number(absl::string_view name, absl::string_view help,
                     std::optional<double>* value) {
  Add(name, "X", help, Kind::kSingle).store = [value](const std::string& text) {
    double parsed = 0;
    if (!absl::SimpleAtod(text, &parsed) || !std::isfinite(parsed)) {
      return Invalid(text, "a number");
    }
    *value = parsed;
    return absl::OkStatus();
  };
}

void FlagSet::Duration(absl::string_view name, absl::string_view help,
                       absl::Duration* value) {
  Add(name, "TIME", help, Kind::kSingle).store =
      [value](const std::string& text) { return StoreDuration(text, value); };
}

void FlagSet::Integers(absl::string_view name, absl::string_view help,
                       std::vector<int32_t>* values) {
  Add(name, "N,N", help, Kind::kSingle).store =
      [values](const std::string& text) { return StoreIntegers(text, values); };
}

void FlagSet::Choice(absl::string_view name, absl::string_view help,
                     std::vector<std::string> choices, std::string* value) {
  Add(name, absl::StrJoin(choices, "|"), help, Kind::kSingle).store =
      [value, choices](const std::string& text) {
        for (const std::string& choice : choices) {
          if (!absl::EqualsIgnoreCase(choice, text)) continue;
          *value = choice;
          return absl::OkStatus();
        }
        return Invalid(text,
                       absl::StrCat("one of ", absl::StrJoin(choices, ", ")));
      };
  declarations_.back().choices = std::move(choices);
}

void FlagSet::Argument(absl::string_view name, absl::string_view help,
                       std::string* value, bool required) {
  FlagDeclaration& flag = Add(name, name, help, Kind::kArgument);
  flag.required = required;
  flag.store = [value](const std::string& text) {
    *value = text;
    return absl::OkStatus();
  };
}

void FlagSet::Arguments(absl::string_view name, absl::string_view help,
                        std::vector<std::string>* values) {
  FlagDeclaration& flag = Add(name, name, help, Kind::kArgument);
  flag.required = true;
  flag.several = true;
  flag.store = [values](const std::string& text) {
    values->push_back(text);
    return absl::OkStatus();
  };
}

void FlagSet::PathArgument(absl::string_view name, absl::string_view help,
                           std::string* value) {
  Argument(name, help, value);
  declarations_.back().is_path = true;
  declarations_.back().store = [value](const std::string& text) {
    *value = ExpandHome(text);
    return absl::OkStatus();
  };
}

void FlagSet::Reads() { declarations_.back().reads = true; }

void FlagSet::Writes() { declarations_.back().writes = true; }

void FlagSet::Required() { declarations_.back().required = true; }

void FlagSet::Hidden() { declarations_.back().hidden = true; }

void FlagSet::Letter(absl::string_view letter) {
  declarations_.back().letter = std::string(letter);
}

std::string DescribeFlags(const std::vector<FlagDeclaration>& flags) {
  std::string text;
  for (const FlagDeclaration& flag : flags) {
    if (flag.hidden) continue;
    std::string head = absl::StrCat("  ", FlagHead(flag));
    const std::string body =
        WrapText(absl::StrCat(flag.help, flag.kind == Kind::kRepeatable
                                             ? " May be given several times."
                                             : ""),
                 kHelpColumn);
    if (head.size() + 2 > kHelpColumn) {
      absl::StrAppend(&text, head, "\n", body);
    } else {
      absl::StrAppend(&text, head, body.substr(head.size()));
    }
  }
  return text;
}

std::string ExpandHome(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || !absl::StartsWith(path, "~/")) return path;
  return absl::StrCat(home, path.substr(1));
}

std::string WrapText(absl::string_view text, int indent) {
  const std::string margin(indent, ' ');
  std::string wrapped;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == ' ') {
      absl::StrAppend(&wrapped, line.empty() ? "" : margin, line, "\n");
      continue;
    }
    std::string current = margin;
    for (absl::string_view word : absl::StrSplit(line, ' ')) {
      if (current.size() > margin.size() &&
          current.size() + 1 + word.size() > kLineWidth) {
        absl::StrAppend(&wrapped, current, "\n");
        current = margin;
      }
      absl::StrAppend(&current, current.size() > margin.size() ? " " : "",
                      word);
    }
    absl::StrAppend(&wrapped, current, "\n");
  }
  return wrapped;
}

}  // namespace optfarm::client_cli
