// Finds ends, and converts between their types and those inside.

#include "engine/formats/tflite/raising/model_ends.h"

#include <tflite/schema_generated.h>

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/model_interface.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/tensor_name.h"

namespace optfarm::formats::tflite_raising {
namespace {

using graph::Endpoint;
using graph::PartialShape;
using tflite::BuiltinOperator;
using tflite::TensorType;

// On an end that a file declared: keys of its signatures, and the names that
// they give the end.
constexpr absl::string_view kSignatureAttr = "_signature";

// A zero point of int8 and of uint8 differ by this.
constexpr int64_t kSignOffset = 128;

// The shape that a placeholder itself states.
PartialShape StatedShape(const graph::Graph& graph, Endpoint tensor) {
  const tensorflow::AttrValue* shape =
      graph.node(tensor.node).FindAttr("shape");
  if (shape == nullptr || !shape->has_shape()) return PartialShape::Unknown();
  auto stated = PartialShape::FromProto(shape->shape());
  return stated.ok() ? *std::move(stated) : PartialShape::Unknown();
}

// The placeholders that the outputs need, with open dimensions as they are.
absl::StatusOr<ModelEnds> FindOpenEnds(const graph::Graph& graph,
                                       const TfliteWriteOptions& options,
                                       const absl::Status& why) {
  if (!options.io.inputs.empty()) return why;
  ModelEnds ends;
  std::vector<Endpoint> outputs;
  if (options.io.outputs.empty()) {
    OPTFARM_ASSIGN_OR_RETURN(outputs, graph::FindOutputs(graph));
    if (outputs.size() > 1 && !options.io.take_all_outputs) return why;
  }
  for (const std::string& name : options.io.outputs) {
    OPTFARM_ASSIGN_OR_RETURN(const auto parsed, graph::ParseTensorName(name));
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint output, graph.Resolve(parsed));
    outputs.push_back(output);
  }
  std::vector<graph::NodeId> roots;
  for (const Endpoint& output : outputs) {
    ends.outputs.push_back({graph.NameOf(output), {output, {}}});
    roots.push_back(output.node);
  }
  const std::vector<bool> needed = graph::ReachableFrom(graph, roots);
  for (graph::NodeId id : graph.Ids()) {
    if (!needed[id] || !graph::IsPlaceholder(graph.node(id).op())) continue;
    const PartialShape shape = StatedShape(graph, {id, 0});
    if (!shape.has_rank()) return why;
    ends.inputs.push_back({graph.node(id).name(), {{id, 0}, shape}});
  }
  return ends;
}

// The ends that a model file declared, in its order and under its names.
ModelEnds DeclaredEnds(const graph::Graph& graph,
                       const graph::ModelInterface& declared,
                       const TfliteWriteOptions& options) {
  ModelEnds ends;
  for (const graph::ModelTensor& input : declared.inputs) {
    PartialShape shape = StatedShape(graph, input.tensor);
    if (!options.dynamic_batch && shape.has_rank() && shape.rank() > 0 &&
        shape.dim(0) < 0) {
      shape.set_dim(0, options.io.batch);
    }
    ends.inputs.push_back({input.name, {input.tensor, std::move(shape)}});
  }
  for (const graph::ModelTensor& output : declared.outputs) {
    ends.outputs.push_back({output.name, {output.tensor, {}}});
  }
  return ends;
}

// Whether nothing is left to infer.
bool IsComplete(const graph::IoRequest& io) {
  return !io.inputs.empty() && !io.outputs.empty() &&
         std::all_of(io.inputs.begin(), io.inputs.end(),
                     [](const graph::InputRequest& input) {
                       return input.shape.has_value() &&
                              input.shape->has_rank();
                     });
}

absl::StatusOr<Endpoint> FindTensor(const graph::Graph& graph,
                                    const std::string& name) {
  OPTFARM_ASSIGN_OR_RETURN(const auto parsed, graph::ParseTensorName(name));
  return graph.Resolve(parsed);
}

// Open dimensions stay open.
absl::StatusOr<ModelEnds> RequestedEnds(const graph::Graph& graph,
                                        const graph::IoRequest& io) {
  ModelEnds ends;
  for (const graph::InputRequest& input : io.inputs) {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor,
                             FindTensor(graph, input.name));
    ends.inputs.push_back(
        {graph::TensorNameInFile(graph, tensor), {tensor, *input.shape}});
  }
  for (const std::string& name : io.outputs) {
    OPTFARM_ASSIGN_OR_RETURN(const Endpoint tensor, FindTensor(graph, name));
    ends.outputs.push_back(
        {graph::TensorNameInFile(graph, tensor), {tensor, {}}});
  }
  return ends;
}

bool IsQuantizedType(TensorType type) {
  return type == TensorType::INT8 || type == TensorType::UINT8 ||
         type == TensorType::INT16;
}

// What stands in the file for an end whose values inside are quantized.
struct FileForm {
  TensorType type{};
  Quantization scales;
};

FileForm FormOf(const DraftTensor& inside, TensorType stated,
                TfliteEnds wanted) {
  TensorType type = stated;
  if (wanted == TfliteEnds::kFloat) type = TensorType::FLOAT32;
  if (wanted == TfliteEnds::kInt8) type = TensorType::INT8;
  if (wanted == TfliteEnds::kUint8) type = TensorType::UINT8;
  // 16-bit values have no 8-bit form.
  if (inside.type == TensorType::INT16 && type != TensorType::FLOAT32) {
    type = TensorType::INT16;
  }
  FileForm form{type, {}};
  if (type == TensorType::FLOAT32) return form;
  form.scales = inside.quantization;
  const int64_t offset = type == inside.type         ? 0
                         : type == TensorType::UINT8 ? kSignOffset
                                                     : -kSignOffset;
  for (int64_t& zero_point : form.scales.zero_point) zero_point += offset;
  return form;
}

TensorId AddEnd(const std::string& name, const PartialShape& shape,
                const FileForm& form, ModelDraft* draft) {
  DraftTensor end;
  end.name = name;
  end.type = form.type;
  end.shape = shape;
  end.quantization = form.scales;
  return draft->AddTensor(std::move(end));
}

// The input's tensor where values inside are quantized: `inside`, or one in
// front of it.
TensorId InputFor(const NamedEnd& input, TensorId inside, TensorType stated,
                  RaisedTensors* tensors) {
  ModelDraft& draft = tensors->draft();
  const FileForm form =
      FormOf(draft.tensor(inside), stated, tensors->options().ends);
  if (form.type == draft.tensor(inside).type) {
    draft.tensors[inside].name = input.name;
    return inside;
  }
  const TensorId end = AddEnd(input.name, input.end.shape, form, &draft);
  draft.AddOperator(BuiltinOperator::QUANTIZE, {end}, {inside});
  return end;
}

TensorId OutputFor(const std::string& name, const PartialShape& shape,
                   TensorId inside, TensorType stated, RaisedTensors* tensors) {
  ModelDraft& draft = tensors->draft();
  const FileForm form =
      FormOf(draft.tensor(inside), stated, tensors->options().ends);
  if (form.type == draft.tensor(inside).type) return inside;
  const TensorId end = AddEnd(name, shape, form, &draft);
  draft.AddOperator(form.type == TensorType::FLOAT32
                        ? BuiltinOperator::DEQUANTIZE
                        : BuiltinOperator::QUANTIZE,
                    {inside}, {end});
  return end;
}

// The name that a signature of the file gives the end; the end's own where
// there is none.
std::string SignatureName(const graph::Graph& graph, const NamedEnd& end) {
  const tensorflow::AttrValue* names =
      graph.node(end.end.tensor.node).FindAttr(kSignatureAttr);
  return names != nullptr && names->list().s_size() > 1 ? names->list().s(1)
                                                        : end.name;
}

// A tensor of its own for an output that is also something else: an input, a
// constant or another output.
TensorId CopyOf(TensorId from, const std::string& name, ModelDraft* draft) {
  DraftTensor copy = draft->tensor(from);
  copy.name = name;
  copy.is_constant = false;
  copy.data.clear();
  const PartialShape shape = copy.shape;
  const TensorId made = draft->AddTensor(std::move(copy));
  std::vector<int64_t> dims;
  int unknown = 0;
  for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) {
    dims.push_back(shape.dim(i));
    unknown += shape.dim(i) < 0 ? 1 : 0;
  }
  TensorId sizes = kNoTensor;
  if (shape.has_rank() && unknown < 2) {
    sizes = draft->AddInt32s(name + "/shape", dims);
  } else {
    DraftTensor numbers;
    numbers.name = name + "/shape";
    numbers.type = TensorType::INT32;
    numbers.shape = PartialShape::OfRank(1);
    sizes = draft->AddTensor(std::move(numbers));
    draft->AddOperator(BuiltinOperator::SHAPE, {from}, {sizes});
  }
  draft->AddOperator(BuiltinOperator::RESHAPE, {from, sizes}, {made});
  return made;
}

}  // namespace

absl::StatusOr<ModelEnds> FindModelEnds(const graph::Graph& graph,
                                        const TfliteWriteOptions& options) {
  const graph::ModelInterface declared = graph::ReadModelInterface(graph);
  if (options.io.inputs.empty() && options.io.outputs.empty() &&
      !declared.outputs.empty()) {
    return DeclaredEnds(graph, declared, options);
  }
  if (IsComplete(options.io)) return RequestedEnds(graph, options.io);
  const auto io = graph::InferIo(graph, options.io);
  if (!io.ok()) {
    if (!absl::IsFailedPrecondition(io.status())) return io.status();
    return FindOpenEnds(graph, options, io.status());
  }
  ModelEnds ends;
  for (const graph::GraphTensor& input : io->inputs) {
    PartialShape shape = input.shape;
    if (options.dynamic_batch && shape.has_rank() && shape.rank() > 0) {
      const PartialShape stated = StatedShape(graph, input.tensor);
      if (stated.has_rank() && stated.rank() == shape.rank() &&
          stated.dim(0) < 0) {
        shape.set_dim(0, graph::kUnknownDim);
      }
    }
    ends.inputs.push_back({graph::TensorNameInFile(graph, input.tensor),
                           {input.tensor, std::move(shape)}});
  }
  for (const graph::GraphTensor& output : io->outputs) {
    ends.outputs.push_back(
        {graph::TensorNameInFile(graph, output.tensor), {output.tensor, {}}});
  }
  return ends;
}

void AddInputs(const ModelEnds& ends, RaisedTensors* tensors) {
  ModelDraft& draft = tensors->draft();
  const GraphView& view = tensors->view();
  for (const NamedEnd& input : ends.inputs) {
    const Endpoint tensor = input.end.tensor;
    const TensorId inside = tensors->NewTensor(tensor);
    draft.tensors[inside].name = input.name;
    const std::optional<Quantized> readers = tensors->QuantizedReaders(tensor);
    TensorId end = inside;
    TensorType stated = TensorType::FLOAT32;
    FindTensorType(view.TypeOf(tensor), &stated);
    const bool wants_quantized = tensors->options().ends == TfliteEnds::kInt8 ||
                                 tensors->options().ends == TfliteEnds::kUint8;
    if (!draft.tensor(inside).quantization.empty()) {
      end = InputFor(input, inside, stated, tensors);
      tensors->SetTensor(tensor, inside);
    } else if (wants_quantized && stated == TensorType::FLOAT32 &&
               readers.has_value() && readers->alike) {
      // Fed with the quantized values that all readers make of it.
      const TensorId twin =
          tensors->NewTensor(tensor, readers->type, readers->scales);
      end = InputFor(input, twin, stated, tensors);
      tensors->SetTwin(tensor, twin);
    } else {
      tensors->SetTensor(tensor, inside);
    }
    draft.inputs.push_back(end);
    draft.input_names.push_back(SignatureName(view.graph(), input));
  }
}

void AddOutputs(const ModelEnds& ends, RaisedTensors* tensors) {
  ModelDraft& draft = tensors->draft();
  const GraphView& view = tensors->view();
  const bool wants_quantized = tensors->options().ends == TfliteEnds::kInt8 ||
                               tensors->options().ends == TfliteEnds::kUint8;
  for (const NamedEnd& output : ends.outputs) {
    const Endpoint tensor = output.end.tensor;
    TensorType stated = TensorType::FLOAT32;
    FindTensorType(view.TypeOf(tensor), &stated);
    const std::optional<TensorId> twin = tensors->Twin(tensor);
    const PartialShape& shape = view.ShapeOf(tensor);
    TensorId end = kNoTensor;
    if (wants_quantized && twin.has_value()) {
      end = OutputFor(output.name, shape, *twin, stated, tensors);
    } else {
      end = tensors->Tensor(tensor);
      const DraftTensor& made = draft.tensor(end);
      if (!made.quantization.empty() && IsQuantizedType(made.type)) {
        end = OutputFor(output.name, shape, end, stated, tensors);
      }
    }
    const auto is_taken = [&](const std::vector<TensorId>& ids) {
      return std::find(ids.begin(), ids.end(), end) != ids.end();
    };
    if (is_taken(draft.inputs) || is_taken(draft.outputs) ||
        draft.tensor(end).is_constant) {
      end = CopyOf(end, output.name, &draft);
    }
    draft.tensors[end].name = output.name;
    draft.outputs.push_back(end);
    draft.output_names.push_back(SignatureName(view.graph(), output));
  }
}

}  // namespace optfarm::formats::tflite_raising
