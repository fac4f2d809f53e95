#include "client_cli/flags/tensor_spec_flag.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/graph/partial_shape.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::client_cli {
namespace {

// A dimension, or nullopt when the word is none. -1 and "?" are unknown ones.
std::optional<int64_t> ParseDimension(absl::string_view word) {
  if (word == "?") return -1;
  int64_t value = 0;
  if (!absl::SimpleAtoi(word, &value) || value < -1) return std::nullopt;
  return value;
}

// "1x224x224x3" -> its words; nullopt for anything else.
std::optional<std::vector<std::string>> SplitAtX(absl::string_view text) {
  std::vector<std::string> words = absl::StrSplit(text, 'x');
  if (words.size() < 2) return std::nullopt;
  for (const std::string& word : words) {
    if (!ParseDimension(word)) return std::nullopt;
  }
  return words;
}

// A name and the words of its shape.
struct Parts {
  std::string name;
  bool has_shape = false;
  std::vector<std::string> dims;
};

// Takes the shape off the end of `head`; `dims` are the words that followed.
Parts SplitHead(const std::string& head, std::vector<std::string> dims) {
  Parts parts{head, !dims.empty(), std::move(dims)};
  const size_t colon = head.rfind(':');
  if (colon == std::string::npos) return parts;
  const std::string end = head.substr(colon + 1);
  const bool second_colon = head.find(':') < colon;
  if (end.size() >= 2 && end.front() == '[' && end.back() == ']') {
    parts.dims =
        absl::StrSplit(end.substr(1, end.size() - 2), ',', absl::SkipEmpty());
  } else if (const auto words = SplitAtX(end)) {
    parts.dims = *words;
  } else if (parts.has_shape || second_colon) {
    // "x:1" with dimensions behind it: the 1 is the first, not a port.
    parts.dims.insert(parts.dims.begin(), end);
  } else {
    return parts;
  }
  parts.name = head.substr(0, colon);
  parts.has_shape = true;
  return parts;
}

absl::StatusOr<v1::TensorSpec> MakeSpec(const std::string& head,
                                        std::vector<std::string> following) {
  const Parts parts = SplitHead(head, std::move(following));
  OPTFARM_ASSIGN_OR_RETURN(const graph::TensorName parsed,
                           graph::ParseTensorName(parts.name));
  if (parsed.is_control()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", parts.name, "' is a control edge, not a tensor"));
  }
  if (parts.dims.size() > graph::kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("the shape of '", parts.name, "' has ", parts.dims.size(),
                     " dimensions; at most ", graph::kMaxRank, " are allowed"));
  }
  v1::TensorSpec spec;
  spec.set_name(parts.name);
  spec.set_shape_known(parts.has_shape);
  for (const std::string& word : parts.dims) {
    const std::optional<int64_t> dim = ParseDimension(word);
    if (!dim) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", word, "' is no dimension in the shape of '", parts.name,
          "'; write NAME:1,224,224,3 with -1 for an unknown one"));
    }
    spec.add_shape(*dim);
  }
  return spec;
}

// Splits at commas outside of brackets.
std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words(1);
  bool inside = false;
  for (const char c : text) {
    inside = c == '[' || (inside && c != ']');
    if (c == ',' && !inside) {
      words.emplace_back();
    } else {
      words.back().push_back(c);
    }
  }
  return words;
}

absl::Status ParseOneValue(const std::string& text,
                           std::vector<v1::TensorSpec>* specs) {
  if (text.empty()) return absl::OkStatus();
  const std::vector<std::string> words = SplitWords(text);
  for (size_t i = 0; i < words.size();) {
    const std::string& head = words[i++];
    std::vector<std::string> dims;
    while (head.find(':') != std::string::npos && i < words.size() &&
           ParseDimension(words[i])) {
      dims.push_back(words[i++]);
    }
    OPTFARM_ASSIGN_OR_RETURN(specs->emplace_back(),
                             MakeSpec(head, std::move(dims)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::TensorSpec>> ParseTensorSpecs(
    const std::vector<std::string>& values) {
  std::vector<v1::TensorSpec> specs;
  for (const std::string& value : values) {
    OPTFARM_RETURN_IF_ERROR(ParseOneValue(value, &specs));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (specs[i].name() == specs[j].name()) {
        return absl::InvalidArgumentError(
            absl::StrCat("'", specs[i].name(), "' is named twice"));
      }
    }
  }
  return specs;
}

}  // namespace optfarm::client_cli
