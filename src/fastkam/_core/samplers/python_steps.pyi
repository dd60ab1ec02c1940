from typing import final

from fastkam._core.samplers.python_kernel import PythonKernel

@final
class StepKernel(PythonKernel): ...
