// SavedModels and MetaGraphs, as far as one gets without variables: parsed,
// signatures read, frozen to the signature's outputs.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "engine/formats/tensorflow/freeze.h"
#include "engine/formats/tensorflow/saved_model.h"

namespace {

namespace formats = optfarm::formats;

void Use(tensorflow::MetaGraphDef meta) {
  (void)formats::InitOpOf(meta);
  formats::FreezeOptions options;
  options.drop_updates = meta.signature_def_size() % 2 == 0;
  for (const std::string& name : formats::SignatureNames(meta)) {
    const auto signature = formats::FindSignature(meta, name);
    if (!signature.ok()) continue;
    for (const auto& output : signature->outputs) {
      options.outputs.push_back(output.tensor);
    }
  }
  formats::FreezeSource source;
  source.graph = std::move(*meta.mutable_graph_def());
  for (const auto& node : source.graph.node()) {
    if (options.outputs.empty()) options.outputs.push_back(node.name());
    if (node.op() == "NoOp") options.initializers = {node.name()};
  }
  source.meta = std::move(meta);
  options.evaluate = [](const tensorflow::GraphDef&, const std::string&) {
    tensorflow::TensorProto value;
    value.set_dtype(tensorflow::DT_FLOAT);
    return value;
  };
  (void)formats::Freeze(std::move(source), options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto model = formats::ParseSavedModel(bytes, "fuzz");
  if (model.ok()) {
    auto meta = formats::TakeMetaGraph(*std::move(model), {"serve"});
    if (meta.ok()) Use(*std::move(meta));
  }
  auto meta = formats::ParseMetaGraph(bytes, "fuzz");
  if (meta.ok()) Use(*std::move(meta));
  return 0;
}
