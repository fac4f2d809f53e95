// A scanner with one character of look-ahead; character classes are ASCII only.

#include "engine/transforms/machinery/transform_string.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace optfarm::transforms {
namespace {

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool IsBareValueChar(char c) {
  return IsNameChar(c) || c == '.' || c == '/' || c == '-';
}

bool IsSpace(char c) {
  return absl::ascii_isspace(static_cast<unsigned char>(c));
}

class Scanner {
 public:
  explicit Scanner(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<TransformStep>> ScanList() {
    std::vector<TransformStep> steps;
    SkipSpace();
    while (!AtEnd()) {
      TransformStep step;
      step.name = TakeWhile(IsNameChar);
      if (step.name.empty()) return Expected("transform name", position_);
      if (Take('(')) {
        OPTFARM_RETURN_IF_ERROR(ScanParameters(position_ - 1, &step));
      }
      steps.push_back(std::move(step));
      SkipSpace();
    }
    return steps;
  }

 private:
  // From after the parenthesis at `opened` to after the one that closes it.
  absl::Status ScanParameters(size_t opened, TransformStep* step) {
    while (!Take(')')) {
      if (AtEnd()) {
        return Error(absl::StrCat("The parenthesis after '", step->name,
                                  "' is not closed"),
                     opened);
      }
      Take(',');
      SkipSpace();
      TransformParameter parameter;
      parameter.key = TakeWhile(IsNameChar);
      if (parameter.key.empty()) return Expected("parameter name", position_);
      if (!Take('=')) return Expected("=", position_);
      OPTFARM_ASSIGN_OR_RETURN(parameter.value, ScanValue());
      step->parameters.push_back(std::move(parameter));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ScanValue() {
    std::string value;
    const size_t start = position_;
    if (Take('"')) {
      while (!AtEnd() && text_[position_] != '"') {
        // A backslash takes the next character with it, and both are kept.
        const size_t length =
            text_[position_] == '\\' && position_ + 1 < text_.size() ? 2 : 1;
        absl::StrAppend(&value, text_.substr(position_, length));
        position_ += length;
      }
      if (!Take('"')) {
        return Error("The quoted value is not closed", start);
      }
    } else {
      value = TakeWhile(IsBareValueChar);
      if (value.empty()) return Expected("parameter value", position_);
    }
    // One stray quote of each kind, as a shell leaves them, is swallowed.
    Take('"');
    Take('\'');
    return value;
  }

  bool AtEnd() const { return position_ >= text_.size(); }

  bool Take(char c) {
    if (AtEnd() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  std::string TakeWhile(bool (*is_wanted)(char)) {
    const size_t start = position_;
    while (!AtEnd() && is_wanted(text_[position_])) ++position_;
    return std::string(text_.substr(start, position_ - start));
  }

  void SkipSpace() {
    while (!AtEnd() && IsSpace(text_[position_])) ++position_;
  }

  absl::Status Expected(absl::string_view wanted, size_t at) const {
    const std::string found = at >= text_.size()
                                  ? "the end"
                                  : absl::StrCat("'", text_.substr(at, 1), "'");
    return Error(absl::StrCat("Looking for ", wanted, ", but found ", found),
                 at);
  }

  // Shows at most kAround characters on each side of the place.
  absl::Status Error(absl::string_view what, size_t at) const {
    constexpr size_t kAround = 30;
    const size_t begin = at > kAround ? at - kAround : 0;
    std::string excerpt(text_.substr(begin, at - begin + kAround));
    for (char& c : excerpt) {
      if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = ' ';
    }
    return absl::InvalidArgumentError(
        absl::StrCat(what, " at column ", at + 1, " of the transforms:\n  ",
                     excerpt, "\n  ", std::string(at - begin, ' '), "^"));
  }

  absl::string_view text_;
  size_t position_ = 0;
};

std::string PrintValue(absl::string_view value) {
  if (!value.empty() &&
      std::all_of(value.begin(), value.end(), IsBareValueChar)) {
    return std::string(value);
  }
  std::string quoted = "\"";
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\') {
      quoted += '\\';
      // A lone backslash at the end would escape the closing quote.
      quoted += i + 1 < value.size() ? value[++i] : '\\';
    } else {
      if (value[i] == '"') quoted += '\\';
      quoted += value[i];
    }
  }
  quoted += '"';
  return quoted;
}

}  // namespace

absl::StatusOr<std::vector<TransformStep>> ParseTransforms(
    absl::string_view text) {
  return Scanner(text).ScanList();
}

std::string PrintTransforms(absl::Span<const TransformStep> steps) {
  std::string text;
  for (const TransformStep& step : steps) {
    absl::StrAppend(&text, text.empty() ? "" : " ", step.name);
    if (step.parameters.empty()) continue;
    absl::string_view separator = "(";
    for (const TransformParameter& parameter : step.parameters) {
      absl::StrAppend(&text, separator, parameter.key, "=",
                      PrintValue(parameter.value));
      separator = ", ";
    }
    absl::StrAppend(&text, ")");
  }
  return text;
}

}  // namespace optfarm::transforms
