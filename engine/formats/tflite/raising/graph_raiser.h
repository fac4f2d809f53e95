// Raises a whole graph. Start here to understand the folder: a GraphView says
// what is in the graph, RaisedTensors what has been made of its tensors, a row
// of the raising table what becomes of a node, a ModelDraft is the result and
// model_packer.h writes it.

#ifndef OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_GRAPH_RAISER_H_
#define OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_GRAPH_RAISER_H_

#include <string>
#include <vector>

#include "engine/formats/tflite/raising/raised_tensors.h"

namespace optfarm::formats::tflite_raising {

// Raises the view's nodes into the draft; fed tensors must have been given
// tensors before. Returns why nodes cannot be raised, "node 'x' (Op): why";
// each is an operator of the draft with its place in the list as refusal.
std::vector<std::string> RaiseGraph(RaisedTensors* tensors);

}  // namespace optfarm::formats::tflite_raising

#endif  // OPTFARM_ENGINE_FORMATS_TFLITE_RAISING_GRAPH_RAISER_H_
