// What a file says of pictures and classes goes into files of other formats.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/export/convert_file.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/model_notes.h"
#include "tests/engine/formats/onnx/onnx_model.h"
#include "tests/support/status_matchers.h"

namespace optfarm::exporting {
namespace {

using ::testing::ElementsAre;

// The notes of `bytes` after its way through a file of `format`.
graph::ModelNotes After(ModelFormat format, std::string* bytes) {
  const auto file =
      formats::LoadModelFromMemory(*bytes, std::nullopt, "it", "");
  EXPECT_TRUE(file.ok()) << file.status();
  const auto graph = graph::Graph::FromDef(file->def);
  EXPECT_TRUE(graph.ok()) << graph.status();
  ConvertOptions options;
  options.written.format = format;
  const auto made = ConvertGraph(*graph, options);
  EXPECT_TRUE(made.ok()) << made.status();
  *bytes = made->bytes;
  const auto back =
      formats::LoadModelFromMemory(*bytes, std::nullopt, "it", "");
  EXPECT_TRUE(back.ok()) << back.status();
  return graph::ReadModelNotes(back->def);
}

TEST(ModelNotesTest, GoFromFormatToFormat) {
  std::string bytes = formats::OnnxBytes(
      absl::StrCat("node { op_type: 'Relu' input: 'x' output: 'y' } input { ",
                   formats::FloatValue("x", {1, 2}), " } output { ",
                   formats::FloatValue("y", {1, 2}), " }"),
      17,
      "metadata_props { key: 'names' value: \"{0: 'cat', 1: 'dog'}\" } "
      "metadata_props { key: 'Image.NominalPixelRange' value: "
      "'Normalized_0_1' }");
  for (const ModelFormat format :
       {ModelFormat::kTflite, ModelFormat::kOnnx, ModelFormat::kTflite}) {
    const graph::ModelNotes notes = After(format, &bytes);
    EXPECT_THAT(notes.labels, ElementsAre("cat", "dog")) << FormatName(format);
    EXPECT_THAT(notes.mean, ElementsAre(0));
    EXPECT_THAT(notes.std, ElementsAre(255));
  }
}

}  // namespace
}  // namespace optfarm::exporting
