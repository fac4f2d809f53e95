#include "engine/optimize/samples/labels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/array_file.h"
#include "engine/optimize/samples/record_input.h"
#include "engine/runtime/core/tensor.h"

namespace optfarm::optimize {
namespace {

// UNITS: bytes.
constexpr uint64_t kMaxLabelsBytes = uint64_t{256} << 20;

std::optional<int64_t> Number(absl::string_view text) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &value)) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string> Lines(absl::string_view text) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// Columns of a line of comma-separated values; quotes protect commas.
std::vector<std::string> Columns(absl::string_view line) {
  std::vector<std::string> columns(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      columns.emplace_back();
    } else {
      columns.back() += c;
    }
  }
  for (std::string& column : columns) {
    column = std::string(absl::StripAsciiWhitespace(column));
  }
  return columns;
}

Labels Unnamed(std::vector<int64_t> classes, std::string source) {
  Labels labels;
  labels.classes = std::move(classes);
  labels.source = std::move(source);
  return labels;
}

// Sample numbers by path and, where it is unique, by file name.
std::map<std::string, int64_t> SamplesByName(const Dataset& dataset) {
  std::map<std::string, int64_t> by_name;
  std::set<std::string> ambiguous;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::string path = dataset.SampleName(i);
    const std::string base = BaseName(path);
    by_name[path] = i;
    if (base == path) continue;
    if (!by_name.emplace(base, i).second) ambiguous.insert(base);
  }
  for (const std::string& base : ambiguous) by_name.erase(base);
  return by_name;
}

// The column that holds the class, given a header; 1 when nothing says so.
size_t ClassColumn(const std::vector<std::string>& header, int64_t classes) {
  const std::string suffix = absl::StrCat(classes);
  for (size_t i = 1; i < header.size(); ++i) {
    if (classes > 0 && absl::EndsWith(header[i], suffix)) return i;
  }
  for (size_t i = 1; i < header.size(); ++i) {
    const std::string name = absl::AsciiStrToLower(header[i]);
    if (name == "index" || name == "class" || name == "label") return i;
  }
  return 1;
}

// Lines that name samples; nullopt when the first lines name none.
absl::StatusOr<std::optional<std::vector<int64_t>>> ByName(
    const std::vector<std::string>& lines, const Dataset& dataset,
    int64_t classes) {
  const std::map<std::string, int64_t> by_name = SamplesByName(dataset);
  std::vector<int64_t> labels(dataset.size(), -1);
  size_t column = 1;
  bool found = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    std::vector<std::string> columns = Columns(lines[i]);
    if (columns.size() == 1) {
      // The last space parts path and class: paths may have spaces.
      columns = absl::StrSplit(lines[i], ' ');
      const std::string last = columns.back();
      columns = {std::string(absl::StripTrailingAsciiWhitespace(
                     absl::string_view(lines[i]).substr(
                         0, lines[i].size() - last.size()))),
                 last};
    }
    const auto sample = by_name.find(columns[0]);
    if (sample == by_name.end()) {
      // A header, or a sample that is not in the folder.
      if (i == 0) column = ClassColumn(columns, classes);
      continue;
    }
    found = true;
    const std::optional<int64_t> value =
        column < columns.size() ? Number(columns[column]) : std::nullopt;
    if (!value.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "line ", i + 1, ": there is no class number for '", columns[0], "'"));
    }
    labels[sample->second] = *value;
  }
  if (!found) return std::optional<std::vector<int64_t>>();
  return std::optional<std::vector<int64_t>>(std::move(labels));
}

// "3:name" and "name" are the class name "name".
std::string ClassName(const std::string& line) {
  const size_t colon = line.find(':');
  if (colon != std::string::npos && Number(line.substr(0, colon))) {
    return std::string(
        absl::StripAsciiWhitespace(absl::string_view(line).substr(colon + 1)));
  }
  return line;
}

// Class names in order, matched with the samples' folders; nullopt when not
// one folder is among them.
std::optional<Labels> ByFolder(const std::vector<std::string>& lines,
                               const Dataset& dataset) {
  Labels labels;
  labels.source = "by the samples' folders";
  std::map<std::string, int64_t> by_class;
  for (size_t i = 0; i < lines.size(); ++i) {
    labels.names.push_back(ClassName(lines[i]));
    by_class.emplace(labels.names.back(), static_cast<int64_t>(i));
  }
  const auto unknown = by_class.find("_unknown_");
  labels.classes.assign(dataset.size(), -1);
  bool found = false;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const std::string folder = dataset.SubfolderOf(i);
    const auto known = by_class.find(folder);
    if (!folder.empty() && known != by_class.end()) {
      labels.classes[i] = known->second;
      found = true;
    } else if (!folder.empty() && unknown != by_class.end()) {
      labels.classes[i] = unknown->second;
    }
  }
  if (!found) return std::nullopt;
  return labels;
}

std::optional<std::vector<int64_t>> InOrder(
    const std::vector<std::string>& lines, const Dataset& dataset) {
  if (static_cast<int64_t>(lines.size()) != dataset.size()) return std::nullopt;
  std::vector<int64_t> labels;
  for (const std::string& line : lines) {
    const std::optional<int64_t> value = Number(line);
    if (!value.has_value()) return std::nullopt;
    labels.push_back(*value);
  }
  return labels;
}

// What there is to read, and which part of it.
struct LabelsFile {
  const std::string& path;
  const std::string& member;
};

absl::StatusOr<std::vector<int64_t>> FromArray(const std::string& bytes,
                                               const LabelsFile& file,
                                               const Dataset& dataset) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto proto,
                           ParseArray(bytes, BaseName(file.path), file.member));
  OPTFARM_ASSIGN_OR_RETURN(const runtime::Tensor tensor,
                           runtime::Tensor::FromProto(proto));
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> labels, tensor.AsInt64s());
  if (static_cast<int64_t>(labels.size()) != dataset.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", labels.size(),
                                                   " labels for ",
                                                   dataset.size(), " samples"));
  }
  return labels;
}

absl::StatusOr<Labels> FromRecords(const LabelsFile& file,
                                   const Dataset& dataset) {
  OPTFARM_ASSIGN_OR_RETURN(const ExampleRecords records,
                           ExampleRecords::Open({file.path}));
  std::string feature = file.member;
  if (feature.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(const tensorflow::Example first, records.Read(0));
    feature = FindLabelFeature(first);
  }
  if (feature.empty()) {
    return absl::InvalidArgumentError(
        "no feature has one of the usual names; choose one as "
        "FILE.tfrecord:FEATURE");
  }
  if (records.size() != dataset.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", records.size(),
                                                   " labels for ",
                                                   dataset.size(), " samples"));
  }
  OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> labels,
                           ReadLabels(records, feature));
  return Unnamed(std::move(labels), absl::StrCat("feature '", feature, "'"));
}

absl::StatusOr<Labels> Read(const std::string& bytes, const LabelsFile& file,
                            const Dataset& dataset, int64_t classes) {
  if (IsArray(bytes)) {
    OPTFARM_ASSIGN_OR_RETURN(std::vector<int64_t> labels,
                             FromArray(bytes, file, dataset));
    return Unnamed(std::move(labels), "one number a sample");
  }
  const std::vector<std::string> lines = Lines(bytes);
  // Folders first: class names may be digits.
  if (auto labels = ByFolder(lines, dataset); labels.has_value()) {
    return *std::move(labels);
  }
  OPTFARM_ASSIGN_OR_RETURN(auto labels, ByName(lines, dataset, classes));
  if (labels.has_value()) {
    return Unnamed(*std::move(labels), "by the samples' paths");
  }
  if (auto numbers = InOrder(lines, dataset); numbers.has_value()) {
    return Unnamed(*std::move(numbers), "one number a sample");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "its ", lines.size(), " lines label none of the ", dataset.size(),
      " samples; give one class number a sample in the samples' order, lines "
      "'path class', or class names that the samples' folders are named "
      "after"));
}

// Adds the offset and checks the classes.
absl::Status Shift(const Dataset& dataset, int64_t classes, int64_t offset,
                   Labels* labels) {
  for (size_t i = 0; i < labels->classes.size(); ++i) {
    int64_t& label = labels->classes[i];
    if (label == -1) continue;
    const int64_t read = label;
    if (read < -1 || __builtin_add_overflow(read, offset, &label) ||
        label < 0 || (classes > 0 && label >= classes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "class ", read,
          offset == 0 ? ""
                      : absl::StrCat(" and the labels' offset of ", offset),
          " of ", dataset.SampleName(static_cast<int64_t>(i)),
          " is out of range; the model's output has ", classes,
          " classes, counted from 0 (--labels_offset shifts them)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Labels> LoadLabels(const std::string& path,
                                  const std::string& member,
                                  const Dataset& dataset, int64_t classes,
                                  int64_t offset) {
  const std::string doing = absl::StrCat("While reading labels '", path, "'");
  const LabelsFile file{path, member};
  absl::StatusOr<Labels> labels;
  if (IsRecords(path)) {
    labels = FromRecords(file, dataset);
  } else {
    OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                             ReadFile(path, kMaxLabelsBytes));
    labels = Read(bytes, file, dataset, classes);
  }
  if (!labels.ok()) return Annotate(labels.status(), doing);
  OPTFARM_RETURN_IF_ERROR(
      Annotate(Shift(dataset, classes, offset, &*labels), doing));
  labels->first_named = offset;
  labels->source =
      absl::StrCat("from '", BaseName(path), "', ", labels->source);
  return labels;
}

absl::StatusOr<Labels> LabelsFromRecords(const Dataset& dataset,
                                         int64_t classes, int64_t offset) {
  constexpr char kDoing[] = "While reading the records' labels";
  absl::StatusOr<RecordLabels> found = dataset.LabelsOfRecords();
  if (!found.ok()) return Annotate(found.status(), kDoing);
  if (found->feature.empty()) return Labels();
  Labels labels =
      Unnamed(std::move(found->classes),
              absl::StrCat("the records' feature '", found->feature, "'"));
  labels.guessed = true;
  OPTFARM_RETURN_IF_ERROR(
      Annotate(Shift(dataset, classes, offset, &labels), kDoing));
  return labels;
}

Labels GuessLabels(const Dataset& dataset, int64_t classes, int64_t offset) {
  std::set<std::string> folders;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    folders.insert(dataset.SubfolderOf(i));
  }
  if (folders.size() < 2 || folders.count("") > 0) return {};
  std::map<std::string, int64_t> by_folder;
  bool numbers = true;
  for (const std::string& folder : folders) {
    const std::optional<int64_t> value = Number(folder);
    int64_t shifted = -1;
    numbers &= value.has_value() && *value >= 0 &&
               !__builtin_add_overflow(*value, offset, &shifted) &&
               shifted >= 0 && shifted < classes;
    if (numbers) by_folder[folder] = shifted;
  }
  if (!numbers) {
    // An offset speaks of numbers; with all classes there is no room for one.
    if (static_cast<int64_t>(folders.size()) != classes || offset != 0) {
      return {};
    }
    int64_t place = 0;
    for (const std::string& folder : folders) by_folder[folder] = place++;
  }
  Labels labels;
  labels.guessed = true;
  if (!numbers) labels.names.assign(folders.begin(), folders.end());
  labels.source = numbers ? "the numbers that the samples' folders are named"
                          : "the samples' folders in sorted order";
  for (int64_t i = 0; i < dataset.size(); ++i) {
    labels.classes.push_back(by_folder[dataset.SubfolderOf(i)]);
  }
  return labels;
}

}  // namespace optfarm::optimize
