// What a TensorFlow Lite file says of itself for the libraries that use it on
// phones: how pictures are normalized, and the names of classes. The former is
// a FlatBuffer of its own in the file's metadata, the latter a text in a zip
// archive that is appended to the file.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_METADATA_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_METADATA_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optfarm::formats {

// All of it may be empty.
struct TfliteMetadata {
  // Names of the classes, in the order of the first output's last dimension.
  std::vector<std::string> labels;
  // UNITS: grey levels, 0..255. The first input is fed (value - mean) / std;
  // one number, or one for each channel. As many of both.
  std::vector<float> mean, std;
  // The picture has one channel.
  bool is_gray = false;

  bool empty() const { return labels.empty() && mean.empty(); }
};

// The class names of a text: one on a line, "name" or "number:name". Empty for
// a text that is something else: with numbers alone, or more than a name can
// be.
std::vector<std::string> ParseClassNames(absl::string_view text);

// Name of the entry of the file's metadata, and of the text with the labels.
inline constexpr char kTfliteMetadataName[] = "TFLITE_METADATA";
inline constexpr char kTfliteLabelsFile[] = "labels.txt";

// The entry's bytes, for a model with these inputs and outputs.
std::string PackTfliteMetadata(const TfliteMetadata& metadata,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& outputs);

// `model` with the text as a zip archive behind it, one label on a line.
// Offsets in the archive count from the start of the file.
std::string AppendTfliteLabels(std::string model,
                               const std::vector<std::string>& labels);

// What an entry says: the normalization of the first input, and the labels of
// the first output that has some, which are in a file of the archive behind
// `model`. What is not there or not well formed stays empty.
TfliteMetadata ParseTfliteMetadata(absl::string_view entry,
                                   absl::string_view model);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_METADATA_H_
