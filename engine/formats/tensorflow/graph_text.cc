#include "engine/formats/tensorflow/graph_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#ifndef OPTFARM_LITE_RUNTIME
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#endif

namespace optfarm::formats {

using tensorflow::GraphDef;

#ifdef OPTFARM_LITE_RUNTIME

absl::StatusOr<GraphDef> ParseGraphText(absl::string_view bytes,
                                        absl::string_view name) {
  return absl::UnimplementedError(
      absl::StrCat(name,
                   " is a graph in text format, which this small runtime "
                   "does not read; convert it with optctl graph transform"));
}

absl::StatusOr<std::string> PrintGraphText(const GraphDef& graph) {
  return absl::UnimplementedError(
      "this small runtime does not write graphs in text format");
}

#else

namespace {

// Keeps the first error of the text parser.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) {
      text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ",
                           message);
    }
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::StatusOr<GraphDef> ParseGraphText(absl::string_view bytes,
                                        absl::string_view name) {
  FirstError errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(100);
  google::protobuf::io::ArrayInputStream input(bytes.data(),
                                               static_cast<int>(bytes.size()));
  GraphDef graph;
  if (!parser.Parse(&input, &graph)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is text, but not a graph in text format: ",
                     absl::StripSuffix(errors.text(), "."),
                     ". Give a frozen TensorFlow graph (.pb or .pbtxt)"));
  }
  return graph;
}

absl::StatusOr<std::string> PrintGraphText(const GraphDef& graph) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetHideUnknownFields(true);
  if (!printer.PrintToString(graph, &text)) {
    return absl::ResourceExhaustedError(
        "The graph is too large to be written as text");
  }
  return text;
}

#endif  // OPTFARM_LITE_RUNTIME

}  // namespace optfarm::formats
