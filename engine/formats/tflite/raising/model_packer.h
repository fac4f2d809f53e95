// From a finished draft to the bytes of a .tflite file.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_PACKER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_PACKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tflite/raising/model_draft.h"

namespace optfarm::formats::tflite_raising {

// A named piece of metadata: its buffer's bytes.
struct MetadataEntry {
  std::string name;
  std::string bytes;
};

// REQUIRES: no operator of the draft is a refusal.
// ERRORS: ResourceExhausted when the file would be larger than FlatBuffers
// can address.
absl::StatusOr<std::string> PackModel(
    const ModelDraft& draft, const std::vector<MetadataEntry>& metadata);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_MODEL_PACKER_H_
