// V2 checkpoints, which TensorFlow calls tensor bundles: a table with one entry
// for each tensor (PREFIX.index) and raw bytes (PREFIX.data-00000-of-00001).

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/files/random_access_file.h"
#include "engine/formats/tensorflow/checkpoint.h"

namespace optfarm::formats {

// Opens one of the bundle's files by its path.
using FileOpener =
    std::function<absl::StatusOr<std::unique_ptr<RandomAccessFile>>(
        const std::string& path)>;

// REQUIRES: `prefix` is without ".index".
// ERRORS: Checkpoint::Open's.
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenTensorBundle(
    const std::string& prefix, const FileOpener& open = RandomAccessFile::Open);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_TENSOR_BUNDLE_H_
