// V1 checkpoints: each file is one table. Its empty key has a list of tensors,
// every other key a part of one with its values as a protobuf message.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_CHECKPOINT_V1_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_CHECKPOINT_V1_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/files/random_access_file.h"
#include "engine/formats/tensorflow/checkpoint.h"

namespace optfarm::formats {

// Several files make one checkpoint together, with different tensors or
// different parts. `name` stands in messages.
// ERRORS: Checkpoint::Open's.
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenCheckpointV1(
    const std::string& name,
    std::vector<std::unique_ptr<RandomAccessFile>> files);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_CHECKPOINT_V1_H_
