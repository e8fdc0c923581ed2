"""Training jobs of managed services: SageMaker and Azure ML."""
