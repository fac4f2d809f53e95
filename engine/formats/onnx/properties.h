// The properties of an ONNX file (metadata_props) and what of them has a
// meaning here: names of classes and the scale of pictures.

#ifndef OPTFARM_ENGINE_FORMATS_ONNX_PROPERTIES_H_
#define OPTFARM_ENGINE_FORMATS_ONNX_PROPERTIES_H_

#include <string>
#include <utility>
#include <vector>

#include "engine/graph/model_notes.h"
#include "onnx/onnx.pb.h"

namespace optfarm::formats {

// Labels come from `names` ({0: 'cat', 1: 'dog'}, as YOLO exporters write it,
// or a JSON list) or `labels` (a line each); the scale from
// `optfarm.input_mean` and `optfarm.input_std`, else from ONNX's
// `Image.NominalPixelRange`. What cannot be understood is a property only.
graph::ModelNotes ReadOnnxProperties(const onnx::ModelProto& model);

// The notes as properties, those that the file had first.
std::vector<std::pair<std::string, std::string>> OnnxPropertiesOf(
    const graph::ModelNotes& notes);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_ONNX_PROPERTIES_H_
