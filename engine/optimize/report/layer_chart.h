// A picture of where an optimized graph loses: a bar for each layer.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_CHART_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_CHART_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/xml_writer.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// An SVG document: signal to noise of the layers that were compared, in the
// order given, longer bars for cleaner layers. The same bytes for the same
// layers.
std::string DrawLayers(absl::Span<const v1::TensorComparison> layers);

// The same with two bars a layer: quantized alone, and with all others.
std::string DrawSensitivity(absl::Span<const v1::LayerSensitivity> layers);

// Begins an SVG document on a white ground, which its caller ends.
// UNITS: pixels.
void BeginChart(int width, int height, XmlWriter& svg);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_LAYER_CHART_H_
