#include "engine/formats/tflite/metadata.h"

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

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

}  // namespace optfarm::formats
