#include "engine/formats/onnx/properties.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace optfarm::formats {
namespace {

constexpr char kNames[] = "names", kLabels[] = "labels",
               kMean[] = "optfarm.input_mean", kStd[] = "optfarm.input_std",
               kRange[] = "Image.NominalPixelRange";
constexpr size_t kMostLabels = 1'000'000, kLongestProperty = 16 << 20;

struct PixelRange {
  absl::string_view name;
  float mean, std;
};
constexpr PixelRange kRanges[] = {{"NominalRange_0_255", 0, 1},
                                  {"Normalized_0_1", 0, 255},
                                  {"Normalized_1_1", 127.5f, 127.5f}};

void SkipSpace(absl::string_view* text) {
  *text = absl::StripLeadingAsciiWhitespace(*text);
}

// A text in single or double quotes at the start of `text`, with the escapes
// that JSON and Python write.
bool TakeQuoted(absl::string_view* text, std::string* value) {
  SkipSpace(text);
  if (text->empty() || ((*text)[0] != '\'' && (*text)[0] != '"')) return false;
  const char quote = (*text)[0];
  for (size_t i = 1; i < text->size(); ++i) {
    const char c = (*text)[i];
    if (c == quote) {
      // JSON may escape a slash, which C does not.
      const std::string escaped = absl::StrReplaceAll(
          text->substr(1, i - 1), {{"\\\\", "\\\\"}, {"\\/", "/"}});
      text->remove_prefix(i + 1);
      return absl::CUnescape(escaped, value);
    }
    if (c == '\\') ++i;
  }
  return false;
}

// The number in front of a name: 3: or '3':. True where there is none.
bool TakeIndex(size_t wanted, absl::string_view* text) {
  SkipSpace(text);
  const size_t colon = text->find(':');
  if (colon == absl::string_view::npos) return false;
  absl::string_view number = text->substr(0, colon);
  number = absl::StripAsciiWhitespace(number);
  if (number.size() > 1 && (number[0] == '\'' || number[0] == '"')) {
    number = number.substr(1, number.size() - 2);
  }
  uint64_t index = 0;
  if (!absl::SimpleAtoi(number, &index) || index != wanted) return false;
  text->remove_prefix(colon + 1);
  return true;
}

// {0: 'cat', 1: 'dog'} or ['cat', 'dog']; empty for any other text.
std::vector<std::string> ParseNames(absl::string_view text) {
  SkipSpace(&text);
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return {};
  const bool has_numbers = text[0] == '{';
  const char end = has_numbers ? '}' : ']';
  text.remove_prefix(1);
  std::vector<std::string> names;
  while (names.size() < kMostLabels) {
    std::string name;
    if (has_numbers && !TakeIndex(names.size(), &text)) return {};
    if (!TakeQuoted(&text, &name)) return {};
    names.push_back(std::move(name));
    SkipSpace(&text);
    if (text.empty()) return {};
    const char next = text[0];
    text.remove_prefix(1);
    if (next == end) return names;
    if (next != ',') return {};
  }
  return {};
}

std::vector<float> ParseNumbers(absl::string_view text) {
  std::vector<float> numbers;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    float number = 0;
    if (!absl::SimpleAtof(part, &number) || !std::isfinite(number)) return {};
    numbers.push_back(number);
  }
  return numbers;
}

std::string ValueOf(const graph::ModelNotes& notes, absl::string_view key) {
  for (const auto& [name, value] : notes.properties) {
    if (name == key) return value;
  }
  return "";
}

void ReadScale(graph::ModelNotes* notes) {
  const std::vector<float> mean = ParseNumbers(ValueOf(*notes, kMean));
  const std::vector<float> std = ParseNumbers(ValueOf(*notes, kStd));
  if (!mean.empty() && graph::IsScale(mean, std)) {
    notes->mean = mean;
    notes->std = std;
    return;
  }
  const std::string range = ValueOf(*notes, kRange);
  for (const PixelRange& known : kRanges) {
    if (known.name != range) continue;
    notes->mean = {known.mean};
    notes->std = {known.std};
  }
}

std::string QuotedNames(const std::vector<std::string>& labels) {
  std::string text = "{";
  for (size_t i = 0; i < labels.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", i, ": '");
    for (const char c : labels[i]) {
      if (c == '\'' || c == '\\') text.push_back('\\');
      text.push_back(c);
    }
    text.push_back('\'');
  }
  return absl::StrCat(text, "}");
}

}  // namespace

graph::ModelNotes ReadOnnxProperties(const onnx::ModelProto& model) {
  graph::ModelNotes notes;
  for (const auto& entry : model.metadata_props()) {
    if (entry.value().size() > kLongestProperty) continue;
    notes.properties.emplace_back(entry.key(), entry.value());
  }
  notes.labels = ParseNames(ValueOf(notes, kNames));
  const std::string lines = ValueOf(notes, kLabels);
  if (notes.labels.empty()) notes.labels = ParseNames(lines);
  if (notes.labels.empty() && !lines.empty()) {
    const absl::string_view text = absl::StripAsciiWhitespace(lines);
    if (absl::c_count(text, '\n') < static_cast<int64_t>(kMostLabels)) {
      for (absl::string_view line : absl::StrSplit(text, '\n')) {
        notes.labels.emplace_back(absl::StripAsciiWhitespace(line));
      }
    }
  }
  ReadScale(&notes);
  return notes;
}

std::vector<std::pair<std::string, std::string>> OnnxPropertiesOf(
    const graph::ModelNotes& notes) {
  std::vector<std::pair<std::string, std::string>> properties =
      notes.properties;
  const auto set = [&](absl::string_view key, std::string value) {
    for (auto& [name, old] : properties) {
      if (name != key) continue;
      old = std::move(value);
      return;
    }
    properties.emplace_back(key, std::move(value));
  };
  if (!notes.labels.empty()) {
    set(kNames, QuotedNames(notes.labels));
    std::erase_if(properties,
                  [](const auto& entry) { return entry.first == kLabels; });
  }
  if (notes.mean.empty()) return properties;
  // All digits that a float has.
  const auto digits = [](std::string* out, float value) {
    absl::StrAppendFormat(out, "%.9g", value);
  };
  set(kMean, absl::StrJoin(notes.mean, ",", digits));
  set(kStd, absl::StrJoin(notes.std, ",", digits));
  // What the file said before may be another scale.
  std::erase_if(properties,
                [](const auto& entry) { return entry.first == kRange; });
  for (const PixelRange& known : kRanges) {
    const auto is_all = [](const std::vector<float>& values, float value) {
      return std::all_of(values.begin(), values.end(),
                         [&](float one) { return one == value; });
    };
    if (is_all(notes.mean, known.mean) && is_all(notes.std, known.std)) {
      set(kRange, std::string(known.name));
    }
  }
  return properties;
}

}  // namespace optfarm::formats
