"""What docstrings of the predictor share (base/doc_texts.py)."""

MODEL = {
    "saved_model": """Example:
    y = fluid.layers.fc(fluid.data('x', [None, 4]), 2)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model('model', ['x'], [y], exe)""",
    "model": """config (AnalysisConfig | NativeConfig): names the model.
model (tuple | None): a loaded model, of a clone.""",
    "tensor": """Returns an {way}.

        Args:
            name (str): its name.

        Returns:
            ZeroCopyTensor: the same one at each call.

        Raises:
            penstock.ProgramError: there is no such {way} (E-predictor-input).
        """,
}
