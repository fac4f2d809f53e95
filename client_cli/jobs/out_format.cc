#include "client_cli/jobs/out_format.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "client_cli/flags/exit_code.h"
#include "client_cli/tables/table.h"
#include "engine/export/export_optimized.h"

namespace optfarm::client_cli {
namespace {

using exporting::ModelFormat;

v1::ModelFormat OfFile(ModelFormat format) {
  if (format == ModelFormat::kOnnx) return v1::ONNX;
  return format == ModelFormat::kTflite ? v1::TFLITE : v1::PB;
}

absl::StatusOr<v1::ModelFormat> ParseWord(absl::string_view word) {
  for (const v1::ModelFormat format : {v1::PB, v1::ONNX, v1::TFLITE}) {
    if (absl::AsciiStrToLower(word) == FormatWord(format)) return format;
  }
  return UsageError(absl::StrCat("--out_format: '",
                                 PrintableLine(std::string(word)),
                                 "' is not pb, onnx or tflite"));
}

// Whether the name promises a format that nobody here writes.
bool IsForeign(absl::string_view path) {
  const std::string lower = absl::AsciiStrToLower(path);
  constexpr const char* kEndings[] = {".h5",  ".keras",   ".pt",        ".pth",
                                      ".uff", ".mlmodel", ".mlpackage", ".dlc"};
  return absl::c_any_of(kEndings, [&lower](const char* ending) {
    return absl::EndsWith(lower, ending);
  });
}

// The format of the file, in which it is among the formats afterwards.
absl::Status AddOutGraph(const std::string& path, OutFormats* out) {
  if (IsForeign(path)) {
    return UsageError(absl::StrCat(
        "--out_graph: the name '", PrintableLine(path),
        "' is that of a format which is not written; end it in .pb, .onnx or "
        ".tflite"));
  }
  const absl::StatusOr<ModelFormat> named = exporting::FormatOfPath(path);
  if (!named.ok()) {
    if (out->formats.size() > 1) {
      return UsageError(absl::StrCat(
          "--out_graph: the name '", PrintableLine(path),
          "' does not say which of the formats of --out_format to write; end "
          "it in .pb, .onnx or .tflite"));
    }
    if (!out->formats.empty()) out->out_graph = out->formats[0];
    return absl::OkStatus();
  }
  out->out_graph = OfFile(*named);
  if (out->formats.empty()) {
    if (out->out_graph != v1::PB) out->formats.push_back(out->out_graph);
    return absl::OkStatus();
  }
  if (absl::c_linear_search(out->formats, out->out_graph)) {
    return absl::OkStatus();
  }
  return UsageError(absl::StrCat("--out_graph: the name '", PrintableLine(path),
                                 "' asks for ", FormatWord(out->out_graph),
                                 ", which --out_format does not list; add it "
                                 "there, or leave --out_format away"));
}

}  // namespace

absl::StatusOr<OutFormats> ParseOutFormats(
    const std::vector<std::string>& values, const std::string& out_graph) {
  OutFormats out;
  for (const std::string& value : values) {
    for (const absl::string_view word : absl::StrSplit(value, ',')) {
      OPTFARM_ASSIGN_OR_RETURN(const v1::ModelFormat format, ParseWord(word));
      if (!absl::c_linear_search(out.formats, format)) {
        out.formats.push_back(format);
      }
    }
  }
  if (!out_graph.empty()) {
    OPTFARM_RETURN_IF_ERROR(AddOutGraph(out_graph, &out));
  }
  return out;
}

std::string FormatWord(v1::ModelFormat format) {
  return std::string(exporting::FormatName(exporting::ToFileFormat(format)));
}

absl::Status CheckOutGraph(const std::string& out_graph) {
  if (out_graph.empty()) return absl::OkStatus();
  if (IsFolder(out_graph)) {
    return UsageError(absl::StrCat("--out_graph: '", out_graph,
                                   "' is a folder; give a file's name"));
  }
  return Annotate(AtomicFile::Create(out_graph).status(), "--out_graph");
}

}  // namespace optfarm::client_cli
