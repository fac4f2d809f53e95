#include "engine/formats/tflite/metadata.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/formats/files/archive.h"
#include "engine/graph/model_notes.h"

namespace optfarm::formats {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using Table = Offset<flatbuffers::Table>;

// --- The metadata's own FlatBuffer -------------------------------------------
//
// Fields by number, of the tables that are written.

constexpr char kIdentifier[] = "M001";
// Of the whole.
constexpr int kModelName = 0, kModelSubgraphs = 3, kModelParser = 7;
// Of a subgraph.
constexpr int kInputs = 2, kOutputs = 3;
// Of a tensor.
constexpr int kTensorName = 0, kTensorContent = 3, kTensorSteps = 4,
              kTensorFiles = 6;
// Of its content, a step and a file.
constexpr int kContentType = 0, kContent = 1;
constexpr int kStepType = 0, kStep = 1;
constexpr int kFileName = 0, kFileType = 2;
constexpr uint8_t kImageContent = 2, kNormalization = 1, kAxisLabels = 2,
                  kRgb = 1, kGray = 2;

flatbuffers::voffset_t Field(int number) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * number);
}

class Packer {
 public:
  explicit Packer(const TfliteMetadata& metadata) : metadata_(metadata) {}

  std::string Pack(const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
    const auto packed_inputs = Tensors(inputs, true);
    const auto packed_outputs = Tensors(outputs, false);
    const Table subgraph = Make([&] {
      builder_.AddOffset(Field(kInputs), packed_inputs);
      builder_.AddOffset(Field(kOutputs), packed_outputs);
    });
    const auto subgraphs = builder_.CreateVector(&subgraph, 1);
    const auto name = builder_.CreateString("model");
    const auto parser = builder_.CreateString("1.0.0");
    const Table model = Make([&] {
      builder_.AddOffset(Field(kModelName), name);
      builder_.AddOffset(Field(kModelSubgraphs), subgraphs);
      builder_.AddOffset(Field(kModelParser), parser);
    });
    builder_.Finish(model, kIdentifier);
    return {reinterpret_cast<const char*>(builder_.GetBufferPointer()),
            builder_.GetSize()};
  }

 private:
  // REQUIRES: `fields` creates nothing but adds to the table.
  template <typename Fields>
  Table Make(const Fields& fields) {
    const auto start = builder_.StartTable();
    fields();
    return Table(builder_.EndTable(start));
  }

  Offset<flatbuffers::Vector<Table>> Tensors(
      const std::vector<std::string>& names, bool are_inputs) {
    std::vector<Table> tensors;
    for (size_t i = 0; i < names.size(); ++i) {
      tensors.push_back(are_inputs ? Input(names[i], i == 0)
                                   : Output(names[i], i == 0));
    }
    return builder_.CreateVector(tensors);
  }

  Table Input(const std::string& name, bool is_first) {
    const bool is_picture = is_first && !metadata_.mean.empty();
    Offset<flatbuffers::Vector<Table>> steps;
    Table content;
    if (is_picture) {
      const auto mean = builder_.CreateVector(metadata_.mean);
      const auto std = builder_.CreateVector(metadata_.std);
      const Table options = Make([&] {
        builder_.AddOffset(Field(0), mean);
        builder_.AddOffset(Field(1), std);
      });
      const Table step = Make([&] {
        builder_.AddElement<uint8_t>(Field(kStepType), kNormalization, 0);
        builder_.AddOffset(Field(kStep), options);
      });
      steps = builder_.CreateVector(&step, 1);
      content = Picture();
    }
    const auto packed_name = builder_.CreateString(name);
    return Make([&] {
      builder_.AddOffset(Field(kTensorName), packed_name);
      if (!is_picture) return;
      builder_.AddOffset(Field(kTensorContent), content);
      builder_.AddOffset(Field(kTensorSteps), steps);
    });
  }

  Table Picture() {
    const uint8_t colors = metadata_.is_gray ? kGray : kRgb;
    const Table image =
        Make([&] { builder_.AddElement<uint8_t>(Field(0), colors, 0); });
    return Make([&] {
      builder_.AddElement<uint8_t>(Field(kContentType), kImageContent, 0);
      builder_.AddOffset(Field(kContent), image);
    });
  }

  Table Output(const std::string& name, bool is_first) {
    const bool has_labels = is_first && !metadata_.labels.empty();
    Offset<flatbuffers::Vector<Table>> files;
    if (has_labels) {
      const auto file_name = builder_.CreateString(kTfliteLabelsFile);
      const Table file = Make([&] {
        builder_.AddOffset(Field(kFileName), file_name);
        builder_.AddElement<uint8_t>(Field(kFileType), kAxisLabels, 0);
      });
      files = builder_.CreateVector(&file, 1);
    }
    const auto packed_name = builder_.CreateString(name);
    return Make([&] {
      builder_.AddOffset(Field(kTensorName), packed_name);
      if (has_labels) builder_.AddOffset(Field(kTensorFiles), files);
    });
  }

  const TfliteMetadata& metadata_;
  FlatBufferBuilder builder_;
};

// --- Reading it --------------------------------------------------------------

using flatbuffers::String;
using flatbuffers::Vector;
using flatbuffers::Verifier;

// A table whose fields are checked as a generated reader checks them.
struct Checked : private flatbuffers::Table {
  template <typename T>
  const T* At(int field) const {
    return GetPointer<const T*>(Field(field));
  }
  uint8_t Byte(int field) const { return GetField<uint8_t>(Field(field), 0); }

 protected:
  bool Begins(Verifier& v) const { return VerifyTableStart(v); }
  bool Ends(Verifier& v) const { return v.EndTable(); }
  bool HasByte(Verifier& v, int field) const {
    return VerifyField<uint8_t>(v, Field(field), 1);
  }
  bool HasText(Verifier& v, int field) const {
    return VerifyOffset(v, Field(field)) && v.VerifyString(At<String>(field));
  }
  bool HasFloats(Verifier& v, int field) const {
    return VerifyOffset(v, Field(field)) &&
           v.VerifyVector(At<Vector<float>>(field));
  }
  template <typename T>
  bool HasTable(Verifier& v, int field) const {
    return VerifyOffset(v, Field(field)) && v.VerifyTable(At<T>(field));
  }
  template <typename T>
  bool HasTables(Verifier& v, int field) const {
    if (!VerifyOffset(v, Field(field))) return false;
    const auto* tables = At<Vector<Offset<T>>>(field);
    return v.VerifyVector(tables) && v.VerifyVectorOfTables(tables);
  }
};

struct ScaleOptions : Checked {
  bool Verify(Verifier& v) const {
    return Begins(v) && HasFloats(v, 0) && HasFloats(v, 1) && Ends(v);
  }
};

// A step whose options have another form says so by its type.
struct Step : Checked {
  bool Verify(Verifier& v) const {
    if (!Begins(v) || !HasByte(v, kStepType)) return false;
    const bool is_scale = Byte(kStepType) == kNormalization;
    if (is_scale && !HasTable<ScaleOptions>(v, kStep)) return false;
    return Ends(v);
  }
  const ScaleOptions* scale() const {
    return Byte(kStepType) == kNormalization ? At<ScaleOptions>(kStep)
                                             : nullptr;
  }
};

struct AssociatedFile : Checked {
  bool Verify(Verifier& v) const {
    return Begins(v) && HasText(v, kFileName) && HasByte(v, kFileType) &&
           Ends(v);
  }
};

struct TensorNotes : Checked {
  bool Verify(Verifier& v) const {
    return Begins(v) && HasTables<Step>(v, kTensorSteps) &&
           HasTables<AssociatedFile>(v, kTensorFiles) && Ends(v);
  }
};

struct SubgraphNotes : Checked {
  bool Verify(Verifier& v) const {
    return Begins(v) && HasTables<TensorNotes>(v, kInputs) &&
           HasTables<TensorNotes>(v, kOutputs) && Ends(v);
  }
};

struct Notes : Checked {
  bool Verify(Verifier& v) const {
    return Begins(v) && HasTables<SubgraphNotes>(v, kModelSubgraphs) && Ends(v);
  }
};

template <typename T>
using TableList = Vector<Offset<T>>;

void ReadScale(const TensorNotes& input, TfliteMetadata* metadata) {
  const auto* steps = input.At<TableList<Step>>(kTensorSteps);
  if (steps == nullptr) return;
  for (const Step* step : *steps) {
    const ScaleOptions* scale = step->scale();
    if (scale == nullptr) continue;
    const auto* mean = scale->At<Vector<float>>(0);
    const auto* std = scale->At<Vector<float>>(1);
    if (mean == nullptr || std == nullptr ||
        !graph::IsScale({mean->data(), mean->size()},
                        {std->data(), std->size()})) {
      continue;
    }
    metadata->mean.assign(mean->begin(), mean->end());
    metadata->std.assign(std->begin(), std->end());
    return;
  }
}

void ReadLabels(const TensorNotes& output, absl::string_view model,
                TfliteMetadata* metadata) {
  constexpr uint64_t kMostBytes = 16 << 20;
  // Labels of values are one for each element, too.
  constexpr uint8_t kValueLabels = 3;
  const auto* files = output.At<TableList<AssociatedFile>>(kTensorFiles);
  if (files == nullptr) return;
  for (const AssociatedFile* file : *files) {
    const auto* name = file->At<String>(kFileName);
    const uint8_t type = file->Byte(kFileType);
    if (name == nullptr || (type != kAxisLabels && type != kValueLabels)) {
      continue;
    }
    const auto text = ReadZippedFile(
        model, absl::string_view(name->c_str(), name->size()), kMostBytes);
    if (text.ok()) metadata->labels = ParseClassNames(*text);
    // Each further one would be unpacked, and may be the same one again.
    return;
  }
}

// --- The archive -------------------------------------------------------------

// The checksum of zip archives.
uint32_t Crc32(absl::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0);
    }
  }
  return ~crc;
}

// Little endian.
void Put(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) {
    out->push_back(static_cast<char>(value >> (8 * i)));
  }
}

// What the headers in front of a stored file and in the directory share.
std::string FileFacts(absl::string_view name, absl::string_view text) {
  constexpr int kVersion = 20, kMidnight = 0, kFirstOfJanuary1980 = 0x21;
  std::string facts;
  Put(kVersion, 2, &facts);
  Put(0, 2, &facts);  // No flags.
  Put(0, 2, &facts);  // Stored as it is.
  Put(kMidnight, 2, &facts);
  Put(kFirstOfJanuary1980, 2, &facts);
  Put(Crc32(text), 4, &facts);
  Put(text.size(), 4, &facts);
  Put(text.size(), 4, &facts);
  Put(name.size(), 2, &facts);
  Put(0, 2, &facts);  // Nothing extra.
  return facts;
}

}  // namespace

std::vector<std::string> ParseClassNames(absl::string_view text) {
  constexpr size_t kMostClasses = 1'000'000, kLongestName = 1000;
  std::vector<std::string> names;
  bool are_numbers = true;
  text = absl::StripAsciiWhitespace(text);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    const size_t colon = line.find(':');
    if (colon != absl::string_view::npos && colon > 0 &&
        absl::c_all_of(line.substr(0, colon), absl::ascii_isdigit)) {
      line = absl::StripAsciiWhitespace(line.substr(colon + 1));
    }
    are_numbers &= absl::c_all_of(line, absl::ascii_isdigit);
    const bool is_text = absl::c_none_of(line, absl::ascii_iscntrl);
    if (line.empty() || line.size() > kLongestName || !is_text ||
        names.size() == kMostClasses) {
      return {};
    }
    names.emplace_back(line);
  }
  if (are_numbers) names.clear();
  return names;
}

std::string PackTfliteMetadata(const TfliteMetadata& metadata,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs) {
  return Packer(metadata).Pack(inputs, outputs);
}

std::string AppendTfliteLabels(std::string model,
                               const std::vector<std::string>& labels) {
  constexpr uint32_t kFileMark = 0x04034b50, kEntryMark = 0x02014b50,
                     kEndMark = 0x06054b50;
  constexpr int kVersion = 20;
  const absl::string_view name = kTfliteLabelsFile;
  const std::string text = absl::StrCat(absl::StrJoin(labels, "\n"), "\n");
  const std::string facts = FileFacts(name, text);
  const size_t file_start = model.size();
  Put(kFileMark, 4, &model);
  absl::StrAppend(&model, facts, name, text);
  const size_t directory_start = model.size();
  Put(kEntryMark, 4, &model);
  Put(kVersion, 2, &model);
  absl::StrAppend(&model, facts);
  Put(0, 2, &model);  // No comment.
  Put(0, 2, &model);  // On the first disk.
  Put(0, 2, &model);
  Put(0, 4, &model);
  Put(file_start, 4, &model);
  absl::StrAppend(&model, name);
  const size_t directory_end = model.size();
  Put(kEndMark, 4, &model);
  Put(0, 4, &model);  // One disk.
  Put(1, 2, &model);
  Put(1, 2, &model);
  Put(directory_end - directory_start, 4, &model);
  Put(directory_start, 4, &model);
  Put(0, 2, &model);  // No comment.
  return model;
}

TfliteMetadata ParseTfliteMetadata(absl::string_view bytes,
                                   absl::string_view model) {
  constexpr int kDepth = 16, kMostTables = 100'000;
  TfliteMetadata metadata;
  // Where it stands in the file need not be aligned.
  const std::string entry(bytes);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(entry.data()),
                                 entry.size(), kDepth, kMostTables);
  if (entry.size() < 8 || !verifier.VerifyBuffer<Notes>(nullptr)) {
    return metadata;
  }
  const auto* subgraphs = flatbuffers::GetRoot<Notes>(entry.data())
                              ->At<TableList<SubgraphNotes>>(kModelSubgraphs);
  if (subgraphs == nullptr || subgraphs->size() == 0) return metadata;
  const auto* inputs = subgraphs->Get(0)->At<TableList<TensorNotes>>(kInputs);
  if (inputs != nullptr && inputs->size() > 0) {
    ReadScale(*inputs->Get(0), &metadata);
  }
  const auto* outputs = subgraphs->Get(0)->At<TableList<TensorNotes>>(kOutputs);
  // Each may name a text to unpack.
  constexpr uint32_t kMostOutputs = 16;
  const uint32_t count =
      outputs == nullptr ? 0 : std::min(outputs->size(), kMostOutputs);
  for (uint32_t i = 0; i < count; ++i) {
    ReadLabels(*outputs->Get(i), model, &metadata);
    if (!metadata.labels.empty()) break;
  }
  return metadata;
}

}  // namespace optfarm::formats
