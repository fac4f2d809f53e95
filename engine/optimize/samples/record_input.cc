#include "engine/optimize/samples/record_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/tensorflow/file_kind.h"
#include "engine/optimize/samples/array_input.h"
#include "engine/optimize/samples/sound_input.h"

namespace optfarm::optimize {
namespace {

using formats::FileKind;
using runtime::Shape;
using runtime::Tensor;
using tensorflow::Example;
using tensorflow::Feature;

const Feature* FindFeature(const Example& example, const std::string& name) {
  const auto found = example.features().feature().find(name);
  return found == example.features().feature().end() ? nullptr : &found->second;
}

std::vector<std::string> FeatureNames(const Example& example) {
  std::vector<std::string> names;
  for (const auto& [name, feature] : example.features().feature()) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Quoted(absl::Span<const std::string> names) {
  if (names.empty()) return "none";
  return absl::StrCat("'", absl::StrJoin(names, "', '"), "'");
}

// A feature that is one file.
FileKind KindOfFile(const Feature& feature) {
  if (feature.bytes_list().value_size() != 1) return FileKind::kUnknown;
  return formats::IdentifyBytes(feature.bytes_list().value(0));
}

// Elements of a fully known shape, unknown leading ones counted as 1; -1 when
// it is not known.
int64_t ElementsOf(const ModelTensor& input) {
  if (!input.shape.has_value()) return -1;
  int64_t elements = 1;
  for (size_t i = 0; i < input.shape->size(); ++i) {
    int64_t dim = (*input.shape)[i];
    if (dim < 0 && i == 0) dim = 1;
    if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return -1;
  }
  return elements;
}

template <typename T>
Tensor OneRow(const T* values, int64_t count) {
  return Tensor::FromValues<T>(Shape({1, count}),
                               std::vector<T>(values, values + count));
}

// The bytes of an array: one a number, or those of the input's own type.
absl::StatusOr<Tensor> FromRawBytes(const std::string& bytes,
                                    const ModelTensor& input) {
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t elements = ElementsOf(input);
  if (input.dtype == tensorflow::DT_FLOAT && elements > 0 &&
      size == elements * static_cast<int64_t>(sizeof(float))) {
    std::vector<float> values(elements);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return OneRow(values.data(), elements);
  }
  return OneRow(reinterpret_cast<const uint8_t*>(bytes.data()), size);
}

// Whole numbers as what the input takes; grey levels for inputs of other types.
absl::StatusOr<Tensor> FromWholeNumbers(
    const google::protobuf::RepeatedField<int64_t>& values,
    const ModelTensor& input) {
  if (input.dtype == tensorflow::DT_INT64 ||
      input.dtype == tensorflow::DT_INT32) {
    return OneRow(values.data(), values.size());
  }
  std::vector<uint8_t> levels;
  for (const int64_t value : values) {
    if (value < 0 || value > 255) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its value ", value, " is no grey level of 0..255; store floats"));
    }
    levels.push_back(static_cast<uint8_t>(value));
  }
  return OneRow(levels.data(), static_cast<int64_t>(levels.size()));
}

// The feature's numbers as an array of one row.
absl::StatusOr<Tensor> Numbers(const Feature& feature,
                               const ModelTensor& input) {
  switch (feature.kind_case()) {
    case Feature::kFloatList: {
      const auto& values = feature.float_list().value();
      return OneRow(values.data(), values.size());
    }
    case Feature::kInt64List:
      return FromWholeNumbers(feature.int64_list().value(), input);
    case Feature::kBytesList:
      if (feature.bytes_list().value_size() == 1) {
        return FromRawBytes(feature.bytes_list().value(0), input);
      }
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", feature.bytes_list().value_size(),
                       " byte strings, not one"));
    default:
      return absl::InvalidArgumentError("it has no values");
  }
}

absl::Status PlanFile(const v1::Preprocessing& preprocessing,
                      const Feature& feature, RecordInput* plan) {
  const FileKind kind = KindOfFile(feature);
  if (plan->input.dtype == tensorflow::DT_STRING) {
    if (feature.bytes_list().value_size() == 1) return absl::OkStatus();
    return absl::InvalidArgumentError("the input takes one string");
  }
  if (kind == FileKind::kRiff) {
    plan->is_sound = true;
    absl::StrAppend(&plan->description, ", WAV samples, -1..1");
    return absl::OkStatus();
  }
  if (kind != FileKind::kJpeg && kind != FileKind::kPng) {
    return absl::OkStatus();
  }
  plan->is_picture = true;
  OPTFARM_ASSIGN_OR_RETURN(
      plan->picture,
      PlanPictureInput(plan->input, preprocessing, plan->normalization));
  absl::StrAppend(&plan->description, ", pictures ", plan->picture.Describe());
  return absl::OkStatus();
}

// The plan for one feature. `plan` has input and normalization.
absl::StatusOr<RecordInput> Plan(RecordInput plan, const std::string& feature,
                                 const v1::Preprocessing& preprocessing,
                                 const Example& first) {
  plan.feature = feature;
  plan.description = absl::StrCat("feature '", feature, "'");
  OPTFARM_RETURN_IF_ERROR(
      PlanFile(preprocessing, *FindFeature(first, feature), &plan));
  OPTFARM_RETURN_IF_ERROR(plan.Value(first).status());
  return plan;
}

// Of several features that fit the one that is a file: the others are likely
// to be small things of by chance the same size.
absl::StatusOr<RecordInput> Infer(const RecordInput& unplanned,
                                  const v1::Preprocessing& preprocessing,
                                  const Example& first) {
  std::vector<RecordInput> fitting;
  std::vector<std::string> names;
  const std::vector<std::string> all = FeatureNames(first);
  for (const std::string& name : all) {
    auto plan = Plan(unplanned, name, preprocessing, first);
    if (!plan.ok()) continue;
    fitting.push_back(*std::move(plan));
    names.push_back(name);
  }
  if (fitting.size() > 1) {
    std::vector<RecordInput> files;
    for (const RecordInput& plan : fitting) {
      const FileKind kind = KindOfFile(*FindFeature(first, plan.feature));
      if (kind == FileKind::kJpeg || kind == FileKind::kPng ||
          kind == FileKind::kRiff) {
        files.push_back(plan);
      }
    }
    if (files.size() == 1) fitting = std::move(files);
  }
  if (fitting.size() == 1) return std::move(fitting[0]);
  const std::string name = graph::ToString(unplanned.input.name);
  return absl::InvalidArgumentError(absl::StrCat(
      fitting.empty() ? "no feature fits" : "several features fit", " input '",
      name, "': ", Quoted(fitting.empty() ? all : names), "; choose one as ",
      name, "=FILE.tfrecord:FEATURE"));
}

}  // namespace

bool IsRecords(const std::string& path) {
  constexpr uint64_t kHead = 12;
  const auto file = formats::RandomAccessFile::Open(path);
  if (!file.ok()) return false;
  const auto head = (*file)->Read(0, kHead);
  return head.ok() && formats::IsRecordFile(*head);
}

absl::StatusOr<ExampleRecords> ExampleRecords::Open(
    const std::vector<std::string>& paths) {
  ExampleRecords records;
  records.first_.push_back(0);
  for (const std::string& path : paths) {
    OPTFARM_ASSIGN_OR_RETURN(formats::RecordFile file,
                             formats::RecordFile::Open(path));
    records.first_.push_back(records.first_.back() + file.size());
    records.files_.push_back(std::move(file));
    records.names_.push_back(BaseName(path));
  }
  if (records.size() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        Quoted(paths), paths.size() == 1 ? " holds" : " hold", " no records"));
  }
  return records;
}

ExampleRecords::Place ExampleRecords::Find(int64_t index) const {
  const auto next = std::upper_bound(first_.begin(), first_.end(), index);
  const auto file = static_cast<size_t>(next - first_.begin()) - 1;
  return {file, index - first_[file]};
}

std::string ExampleRecords::NameOf(int64_t index) const {
  const Place place = Find(index);
  return absl::StrCat(names_[place.file], "#", place.record);
}

absl::StatusOr<Example> ExampleRecords::Read(int64_t index) const {
  const Place place = Find(index);
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           files_[place.file].Read(place.record));
  Example example;
  if (!example.ParseFromString(bytes) || example.features().feature().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("record ", NameOf(index), " is no tf.Example"));
  }
  return example;
}

absl::StatusOr<Tensor> RecordInput::Value(const Example& example) const {
  const Feature* values = FindFeature(example, feature);
  if (values == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no feature '", feature, "'"));
  }
  const std::string doing = absl::StrCat("feature '", feature, "'");
  const bool is_file =
      is_picture || is_sound || input.dtype == tensorflow::DT_STRING;
  if (is_file && values->bytes_list().value_size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(doing, " does not hold one byte string"));
  }
  if (is_picture) {
    return PictureFromBytes(values->bytes_list().value(0), picture);
  }
  if (is_sound) {
    return SoundValue(SoundPart::kSamples, input,
                      values->bytes_list().value(0));
  }
  if (input.dtype == tensorflow::DT_STRING) {
    return Tensor::Scalar<std::string>(values->bytes_list().value(0));
  }
  auto row = Numbers(*values, input);
  if (!row.ok()) return Annotate(row.status(), doing);
  auto array =
      MakeArrayInput(*std::move(row), input, v1::DataSource::LAYOUT_UNSPECIFIED,
                     normalization);
  if (!array.ok()) return Annotate(array.status(), doing);
  return array->Sample(0);
}

absl::StatusOr<RecordInput> PlanRecordInput(
    const v1::DataSource& source, const v1::Preprocessing& preprocessing,
    const ModelTensor& input, const Example& first) {
  RecordInput plan;
  plan.input = input;
  plan.normalization = NormalizationOf(preprocessing, source);
  const std::string& feature = source.member();
  if (feature.empty()) return Infer(plan, preprocessing, first);
  if (FindFeature(first, feature) == nullptr) {
    return absl::NotFoundError(absl::StrCat("the first record has no feature '",
                                            feature, "'; it has ",
                                            Quoted(FeatureNames(first))));
  }
  return Plan(std::move(plan), feature, preprocessing, first);
}

std::string FindLabelFeature(const Example& first) {
  for (const char* name : {"image/class/label", "label", "class", "labels",
                           "image/label", "target"}) {
    if (LabelOf(first, name).ok()) return name;
  }
  return "";
}

absl::StatusOr<int64_t> LabelOf(const Example& example,
                                const std::string& feature) {
  const Feature* values = FindFeature(example, feature);
  if (values == nullptr || values->int64_list().value_size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("feature '", feature, "' does not hold one whole number"));
  }
  return values->int64_list().value(0);
}

absl::StatusOr<std::vector<int64_t>> ReadLabels(const ExampleRecords& records,
                                                const std::string& feature) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < records.size(); ++i) {
    OPTFARM_ASSIGN_OR_RETURN(const Example example, records.Read(i));
    auto label = LabelOf(example, feature);
    if (!label.ok()) {
      return Annotate(label.status(),
                      absl::StrCat("record ", records.NameOf(i)));
    }
    labels.push_back(*label);
  }
  return labels;
}

}  // namespace optfarm::optimize
