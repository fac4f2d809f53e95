#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/authenticated_encryption.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/api/guard.h"
#include "engine/api/handles.h"
#include "engine/api/read_options.h"
#include "engine/formats/tensorflow/encrypted_model.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/graph/verify.h"

namespace optfarm::api {
namespace {

absl::Status MakeModel(formats::LoadedGraph loaded, optfarm_model** model) {
  OPTFARM_ASSIGN_OR_RETURN(graph::Graph graph,
                           graph::Graph::FromDef(std::move(loaded.def)));
  OPTFARM_RETURN_IF_ERROR(graph::Verify(graph));
  *model = new optfarm_model(runtime::LoadedModel::Create(std::move(graph)),
                             formats::RegionsOf(std::move(loaded.package)));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<AeadKey>> KeyOf(
    const optfarm_model_options& options) {
  if (options.key == nullptr) return std::nullopt;
  if (options.key_size != kAeadKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the key has ", options.key_size, " bytes; it needs ", kAeadKeyBytes));
  }
  return AeadKey(
      absl::string_view(static_cast<const char*>(options.key), kAeadKeyBytes));
}

absl::StatusOr<formats::LoadedGraph> FromFile(
    const std::string& path, const std::optional<AeadKey>& key) {
  if (key.has_value()) {
    const auto mapped = MappedFile::Open(path);
    if (mapped.ok() && formats::IsEncryptedModel((*mapped)->bytes())) {
      return formats::LoadGraphFromMemory((*mapped)->bytes(), key,
                                          absl::StrCat("'", path, "'"));
    }
  }
  return formats::LoadGraph(path);
}

enum class Side { kInputs, kOutputs };

absl::StatusOr<const std::vector<TensorDescription>*> ListOf(
    const optfarm_model* model, Side side) {
  if (model == nullptr) return MissingArgument("model");
  const absl::StatusOr<Signature>& signature = model->signature();
  if (!signature.ok()) return signature.status();
  return side == Side::kInputs ? &signature->inputs : &signature->outputs;
}

optfarm_status* Count(const optfarm_model* model, Side side, size_t* count) {
  return Guard([&]() -> absl::Status {
    if (count == nullptr) return MissingArgument("count");
    OPTFARM_ASSIGN_OR_RETURN(const auto* list, ListOf(model, side));
    *count = list->size();
    return absl::OkStatus();
  });
}

optfarm_status* Describe(const optfarm_model* model, Side side, size_t index,
                         optfarm_tensor_info* info) {
  return Guard([&]() -> absl::Status {
    if (info == nullptr) return MissingArgument("info");
    OPTFARM_ASSIGN_OR_RETURN(const auto* list, ListOf(model, side));
    if (index >= list->size()) {
      return absl::OutOfRangeError(
          absl::StrCat(side == Side::kInputs ? "input " : "output ", index,
                       " of a model that has ", list->size()));
    }
    const TensorDescription& found = (*list)[index];
    info->name = found.name.c_str();
    info->dtype = static_cast<optfarm_dtype>(found.dtype);
    info->rank = found.has_rank ? static_cast<int32_t>(found.dims.size()) : -1;
    info->dims = found.dims.empty() ? nullptr : found.dims.data();
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace optfarm::api

using optfarm::api::Guard;
using optfarm::api::MissingArgument;
using optfarm::api::Side;

extern "C" {

void optfarm_model_options_init(optfarm_model_options* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof(*options);
}

optfarm_status* optfarm_model_load(const char* path,
                                   const optfarm_model_options* options,
                                   optfarm_model** model) {
  return Guard([&]() -> absl::Status {
    if (path == nullptr) return MissingArgument("path");
    if (model == nullptr) return MissingArgument("model");
    OPTFARM_ASSIGN_OR_RETURN(const auto key,
                             optfarm::api::KeyOf(optfarm::api::ReadOptions(
                                 options, optfarm_model_options_init)));
    OPTFARM_ASSIGN_OR_RETURN(optfarm::formats::LoadedGraph loaded,
                             optfarm::api::FromFile(path, key));
    return optfarm::Annotate(optfarm::api::MakeModel(std::move(loaded), model),
                             absl::StrCat("'", path, "'"));
  });
}

optfarm_status* optfarm_model_load_memory(const void* data, size_t size,
                                          const optfarm_model_options* options,
                                          optfarm_model** model) {
  return Guard([&]() -> absl::Status {
    if (data == nullptr) return MissingArgument("data");
    if (model == nullptr) return MissingArgument("model");
    OPTFARM_ASSIGN_OR_RETURN(const auto key,
                             optfarm::api::KeyOf(optfarm::api::ReadOptions(
                                 options, optfarm_model_options_init)));
    OPTFARM_ASSIGN_OR_RETURN(
        optfarm::formats::LoadedGraph loaded,
        optfarm::formats::LoadGraphFromMemory(
            absl::string_view(static_cast<const char*>(data), size), key,
            "the model in memory"));
    return optfarm::api::MakeModel(std::move(loaded), model);
  });
}

void optfarm_model_delete(optfarm_model* model) { delete model; }

optfarm_status* optfarm_model_input_count(const optfarm_model* model,
                                          size_t* count) {
  return optfarm::api::Count(model, Side::kInputs, count);
}

optfarm_status* optfarm_model_output_count(const optfarm_model* model,
                                           size_t* count) {
  return optfarm::api::Count(model, Side::kOutputs, count);
}

optfarm_status* optfarm_model_input(const optfarm_model* model, size_t index,
                                    optfarm_tensor_info* info) {
  return optfarm::api::Describe(model, Side::kInputs, index, info);
}

optfarm_status* optfarm_model_output(const optfarm_model* model, size_t index,
                                     optfarm_tensor_info* info) {
  return optfarm::api::Describe(model, Side::kOutputs, index, info);
}

}  // extern "C"
