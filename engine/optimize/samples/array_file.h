// Arrays of samples or labels in whatever form they come: .npy, .npz, IDX.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_ARRAY_FILE_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_ARRAY_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace optfarm::optimize {

// Whether the bytes are those of a file that ParseArray reads.
bool IsArray(absl::string_view bytes);

// The form is found by content. `member` chooses an array of an .npz; it may
// be empty when there is one. `name` stands in messages.
// ERRORS: InvalidArgument for bytes of none of these forms, NotFound with the
// names there are when the .npz has no such array; those of the form's parser.
absl::StatusOr<tensorflow::TensorProto> ParseArray(absl::string_view bytes,
                                                   absl::string_view name,
                                                   absl::string_view member);

// The same for a file. ERRORS: ParseArray's and the file's.
absl::StatusOr<tensorflow::TensorProto> LoadArray(const std::string& path,
                                                  absl::string_view member);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_ARRAY_FILE_H_
