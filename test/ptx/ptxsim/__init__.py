"""PTX on the CPU: runs a kernel lane by lane in NumPy, and checks what a GPU would not tell.

    module = ptxsim.Module(ptx_text)
    mem = ptxsim.Memory()
    x = mem.alloc(array)
    module.launch("kernel", grid=(4, 1, 1), block=128, shared_bytes=0, args=[x, 512], memory=mem)
    mem.read(x, np.float32, (512,))

Checked: bounds and alignment of every access, races and reads of unwritten bytes in shared memory,
copies read before they are waited for, and threads that wait for each other for ever.
"""

from .machine import Module
from .memory import Fault, Memory, Unsupported

__all__ = ["Fault", "Memory", "Module", "Unsupported"]
