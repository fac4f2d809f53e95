#include "engine/formats/tensorflow/file_kind.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/formats/files/wire_reader.h"
#include "engine/formats/tensorflow/encrypted_model.h"

namespace optfarm::formats {
namespace {

// How much of a file is looked at to tell text from binary.
constexpr size_t kTextSample = 4096;

bool LooksLikeText(absl::string_view bytes) {
  for (const char c : bytes.substr(0, kTextSample)) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f') {
      return false;
    }
    if (u == 0x7f) return false;
  }
  return true;
}

uint64_t ReadLittleEndian64(const char* p) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(p[i]);
  }
  return value;
}

bool IsSortedTable(absl::string_view bytes) {
  constexpr uint64_t kMagic = 0xdb4775248b80fb57;
  return bytes.size() >= 48 &&
         ReadLittleEndian64(bytes.data() + bytes.size() - 8) == kMagic;
}

// The last 8 bytes say where a directory of named regions starts.
bool IsMemoryMapped(absl::string_view bytes) {
  if (bytes.size() < 16) return false;
  const size_t end = bytes.size() - 8;
  const uint64_t directory = ReadLittleEndian64(bytes.data() + end);
  return directory < end &&
         absl::StrContains(bytes.substr(directory, end - directory),
                           "memmapped_package://");
}

// True when `bytes` are whole fields that a node list may consist of: field 1
// of nodes with a name and an op. Only the first node is looked at.
bool StartsWithNode(absl::string_view bytes) {
  WireReader reader(bytes);
  const std::optional<WireField> node = reader.Next();
  if (!node.has_value() || node->number != 1 || !node->is_bytes) return false;
  WireReader fields(node->bytes);
  bool has_op = false;
  while (const std::optional<WireField> field = fields.Next()) {
    if (field->number == 2) {
      has_op = field->is_bytes && !field->bytes.empty() &&
               LooksLikeText(field->bytes);
    }
  }
  return has_op && fields.AtEnd();
}

// MetaGraphDef: meta_info_def = 1 (not a node), graph_def = 2.
bool IsMetaGraph(absl::string_view bytes) {
  WireReader reader(bytes);
  while (const std::optional<WireField> field = reader.Next()) {
    if (field->number == 2 && field->is_bytes) {
      return StartsWithNode(field->bytes);
    }
    if (field->number > 6) return false;
  }
  return false;
}

// SavedModel: version = 1 as a number, meta_graphs = 2.
bool IsSavedModel(absl::string_view bytes) {
  WireReader reader(bytes);
  while (const std::optional<WireField> field = reader.Next()) {
    if (field->number == 1 && field->is_bytes) return false;
    if (field->number == 2) return field->is_bytes && IsMetaGraph(field->bytes);
    if (field->number > 2) return false;
  }
  return false;
}

// ModelProto: ir_version = 1 as a number, then strings, graph = 7.
bool IsOnnx(absl::string_view bytes) {
  WireReader reader(bytes);
  bool has_version = false;
  while (const std::optional<WireField> field = reader.Next()) {
    if (field->number == 1) {
      if (field->is_bytes) return false;
      has_version = true;
    }
    if (field->number == 7) return has_version && field->is_bytes;
    if (field->number > 25) return false;
  }
  return false;
}

// Model: specificationVersion = 1 as a small number, description = 2, the
// model itself in a field from 200 up.
bool IsCoreMl(absl::string_view bytes) {
  WireReader reader(bytes);
  bool has_version = false;
  while (const std::optional<WireField> field = reader.Next()) {
    if (field->number == 1) {
      if (field->is_bytes) return false;
      has_version = true;
    }
    if (field->number >= 200 && field->number < 4000) {
      return has_version && field->is_bytes;
    }
    if (field->number > 10 && field->number < 200) return false;
  }
  return false;
}

// A length of eight bytes, and that many of JSON.
bool IsSafetensors(absl::string_view bytes) {
  return bytes.size() > 16 && bytes[8] == '{' && bytes[9] == '"' &&
         ReadLittleEndian64(bytes.data()) <= bytes.size() - 8;
}

// Names of an archive's first entries tell what wrote it.
FileKind KindOfZip(absl::string_view bytes) {
  const absl::string_view start = bytes.substr(0, kTextSample);
  if (absl::StrContains(start, "/data.pkl") ||
      absl::StrContains(start, "/constants.pkl")) {
    return FileKind::kPyTorch;
  }
  const absl::string_view end =
      bytes.substr(bytes.size() - std::min(bytes.size(), kTextSample));
  if (absl::StrContains(end, "model.weights.h5") &&
      absl::StrContains(end, "config.json")) {
    return FileKind::kKeras;
  }
  return FileKind::kZip;
}

// What torch.save wrote before it wrote archives: a pickled magic number.
bool IsPickledTorch(absl::string_view bytes) {
  constexpr absl::string_view kMagic(
      "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14);
  return absl::StartsWith(bytes, kMagic);
}

bool IsOtherPicture(absl::string_view bytes) {
  const bool webp = absl::StartsWith(bytes, "RIFF") && bytes.size() >= 12 &&
                    bytes.substr(8, 4) == "WEBP";
  const bool bmp = absl::StartsWith(bytes, "BM") && bytes.size() >= 26 &&
                   bytes.substr(6, 4) == absl::string_view("\0\0\0\0", 4);
  return webp || bmp || absl::StartsWith(bytes, "GIF8");
}

FileKind KindOfText(absl::string_view text) {
  const absl::string_view start =
      absl::StripLeadingAsciiWhitespace(text.substr(0, kTextSample));
  if (absl::StartsWith(start, "version https://git-lfs")) {
    return FileKind::kGitLfsPointer;
  }
  if (absl::StartsWith(start, "{")) return FileKind::kJson;
  if (absl::StartsWith(start, "<")) return FileKind::kHtml;
  if (absl::StartsWith(start, "saved_model_schema_version") ||
      absl::StartsWith(start, "meta_graphs")) {
    return FileKind::kSavedModel;
  }
  if (absl::StartsWith(start, "meta_info_def") ||
      absl::StartsWith(start, "graph_def")) {
    return FileKind::kMetaGraph;
  }
  return FileKind::kText;
}

}  // namespace

FileKind IdentifyBytes(absl::string_view bytes) {
  if (bytes.empty()) return FileKind::kEmpty;
  if (IsEncryptedModel(bytes)) return FileKind::kEncryptedModel;
  if (absl::StartsWith(bytes, "\x1f\x8b")) return FileKind::kGzip;
  if (absl::StartsWith(bytes, "PK\x03\x04")) return KindOfZip(bytes);
  if (IsPickledTorch(bytes)) return FileKind::kPyTorch;
  if (IsOtherPicture(bytes)) return FileKind::kOtherPicture;
  if (absl::StartsWith(bytes, "\x89HDF\r\n")) return FileKind::kHdf5;
  if (absl::StartsWith(bytes, "\x93NUMPY")) return FileKind::kNpy;
  if (absl::StartsWith(bytes, "\x89PNG")) return FileKind::kPng;
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return FileKind::kJpeg;
  if (absl::StartsWith(bytes, "RIFF")) return FileKind::kRiff;
  if (bytes.size() >= 8 && bytes.substr(4, 4) == "TFL3") {
    return FileKind::kTfLite;
  }
  if (bytes.size() >= 512 && bytes.substr(257, 5) == "ustar") {
    return FileKind::kTar;
  }
  if (IsSortedTable(bytes)) return FileKind::kCheckpoint;
  // It may begin with anything, even with a graph.
  if (IsMemoryMapped(bytes)) return FileKind::kMemoryMappedGraph;
  if (LooksLikeText(bytes)) return KindOfText(bytes);
  if (StartsWithNode(bytes)) return FileKind::kUnknown;
  if (IsSavedModel(bytes)) return FileKind::kSavedModel;
  if (IsMetaGraph(bytes)) return FileKind::kMetaGraph;
  if (IsOnnx(bytes)) return FileKind::kOnnx;
  if (IsCoreMl(bytes)) return FileKind::kCoreMl;
  if (IsSafetensors(bytes)) return FileKind::kSafetensors;
  return FileKind::kUnknown;
}

std::string AdviceForGraph(FileKind kind) {
  constexpr absl::string_view kFreeze =
      "its weights are kept outside the graph. Give optctl submit or run the "
      "SavedModel's folder, or the .meta file with --checkpoint=PREFIX; "
      "elsewhere freeze it first (optctl graph freeze) and give the frozen "
      ".pb";
  switch (kind) {
    case FileKind::kUnknown:
    case FileKind::kText:
    case FileKind::kMemoryMappedGraph:
    case FileKind::kEncryptedModel:
      return "";
    case FileKind::kEmpty:
      return "is empty; was it copied completely?";
    case FileKind::kGzip:
      return "is compressed with gzip; unpack it first (gunzip, or tar xzf) "
             "and give the .pb inside (optctl submit and run take an archive "
             "of a SavedModel)";
    case FileKind::kZip:
    case FileKind::kTar:
      return absl::StrCat(
          "is a ", kind == FileKind::kZip ? "zip" : "tar",
          " archive; unpack it first and give the frozen .pb inside (optctl "
          "submit and run take an archive of a SavedModel)");
    case FileKind::kHdf5:
      return "is an HDF5 file, as Keras saves models in .h5; load it in Keras "
             "and write a SavedModel (model.export('folder')) or an ONNX file "
             "(tf2onnx), and give that";
    case FileKind::kKeras:
      return "is a Keras model (.keras); load it in Keras and write a "
             "SavedModel (model.export('folder')) or an ONNX file (tf2onnx), "
             "and give that";
    case FileKind::kPyTorch:
      return "is a PyTorch file (.pt, .pth), which needs Python to be run; "
             "write an ONNX file with torch.onnx.export(model, inputs, "
             "'model.onnx') and give that";
    case FileKind::kSafetensors:
      return "is a safetensors file, which has weights but no graph; load it "
             "into its model, write an ONNX file with torch.onnx.export and "
             "give that";
    case FileKind::kCoreMl:
      return "is a Core ML model (.mlmodel), which only Apple's runtime "
             "reads; give the ONNX, TensorFlow Lite or TensorFlow model that "
             "it was made from";
    case FileKind::kOtherPicture:
      return "is a picture; pictures are samples (--calibration=FOLDER, as "
             "JPEG or PNG), the model is another file";
    case FileKind::kTfLite:
      return "is a TensorFlow Lite model, which is already converted; give "
             "the frozen TensorFlow graph (.pb) that it was made from";
    case FileKind::kCheckpoint:
      return "is a checkpoint, which has weights but no graph. Freeze its "
             "graph "
             "together with it first (optctl graph freeze --input_graph "
             "--input_checkpoint) and give the frozen .pb";
    case FileKind::kSavedModel:
      return absl::StrCat("is a SavedModel: ", kFreeze);
    case FileKind::kMetaGraph:
      return absl::StrCat("is a MetaGraphDef (a checkpoint's .meta file): ",
                          kFreeze);
    case FileKind::kOnnx:
      return "is an ONNX model; give a frozen TensorFlow graph (.pb)";
    case FileKind::kGitLfsPointer:
      return "is a Git LFS pointer, not the file itself; run `git lfs pull`";
    case FileKind::kJson:
      return "is JSON; give a frozen TensorFlow graph (.pb)";
    case FileKind::kHtml:
      return "is a web page; was the download link the right one?";
    case FileKind::kJpeg:
    case FileKind::kPng:
      return "is a picture; pictures are samples (--calibration=FOLDER), the "
             "model is another file";
    case FileKind::kNpy:
      return "is a NumPy array; arrays are samples "
             "(--calibration=INPUT=FILE.npy), the model is another file";
    case FileKind::kRiff:
      return "is a WAV or other RIFF file; sounds are samples "
             "(--calibration=FOLDER), the model is another file";
  }
  return "";
}

}  // namespace optfarm::formats
