#include "client_cli/tables/yaml_text.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/json_string.h"

namespace optfarm::client_cli {
namespace {

using nlohmann::ordered_json;

constexpr int kMostDepth = 200;

// Whether YAML reads these bytes as the same text without quotes.
bool IsPlain(const std::string& text) {
  if (text.empty() || !absl::ascii_isalpha(text[0])) return false;
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("_-./+", c)) return false;
  }
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "null",
                           "y", "n", "nan", "inf"}) {
    if (absl::EqualsIgnoreCase(text, word)) return false;
  }
  double number = 0;
  return !absl::SimpleAtod(text, &number);
}

std::string Scalar(const ordered_json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  // YAML's double quotes take all that JSON's hold.
  return IsPlain(text) ? text : optfarm::JsonString(text);
}

bool IsBlock(const ordered_json& value) {
  return value.is_structured() && !value.empty();
}

// Appends a value behind "key:" or "-", at a depth that its parts are indented
// by.
bool Append(const ordered_json& value, int depth, bool in_list,
            std::string* out) {
  if (depth > kMostDepth) return false;
  if (!IsBlock(value)) {
    absl::StrAppend(out, in_list || depth > 0 ? " " : "", Scalar(value), "\n");
    return true;
  }
  // The first part of a list's item follows the dash.
  bool same_line = in_list;
  if (!in_list && depth > 0) out->push_back('\n');
  for (const auto& [key, part] : value.items()) {
    out->append(same_line ? " " : std::string(2 * depth, ' '));
    same_line = false;
    const bool is_list = value.is_array();
    out->append(is_list ? "-" : absl::StrCat(Scalar(key), ":"));
    if (!Append(part, depth + 1, is_list, out)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> JsonToYaml(absl::string_view json) {
  const auto parse = [](absl::string_view text) {
    return ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  };
  std::vector<ordered_json> documents = {parse(json)};
  if (documents[0].is_discarded()) {
    documents.clear();
    for (const absl::string_view line :
         absl::StrSplit(json, '\n', absl::SkipWhitespace())) {
      documents.push_back(parse(line));
      if (documents.back().is_discarded()) return std::nullopt;
    }
  }
  std::string text;
  for (const ordered_json& document : documents) {
    if (!text.empty()) text.append("---\n");
    if (!Append(document, 0, false, &text)) return std::nullopt;
  }
  return text;
}

}  // namespace optfarm::client_cli
